import { aggregates } from '../domain/catalogue.ts'
import { type SealedField, sensitiveFields } from '../domain/kernel/sealed.ts'
import { PLAIN_TEXTS } from '../domain/plain-texts.ts'

/** A way in which texts of events are kept. */
export interface KeptTexts {
  readonly what: string
  readonly whose: string
  readonly how: string
  /** By event type, see {@link PLAIN_TEXTS}. */
  readonly fields: Readonly<Record<string, string>>
}

/** Every text of every event: whose it may be, and how it is kept. */
export function keptTexts(): readonly KeptTexts[] {
  return [
    ...KINDS.map((kind) => ({ ...SENSITIVE[kind], fields: declared(kind) })),
    ...PLAIN_TEXTS.map(({ what, whose, why, fields }) => ({
      what,
      whose,
      how: `in plain text: ${why}`,
      fields,
    })),
  ]
}

const KINDS = ['person', 'employer', 'maybe', 'secret'] as const

const SENSITIVE = {
  person: {
    what: 'who a payroll row, a change of an employee or a share of an intake is about; names of operators',
    whose: "an employee's, an owner's, or an operator's",
    how: "sealed under the person's key",
  },
  employer: {
    what: 'who an employer or a payer is: number, address, contact, bank account',
    whose: "the employer's, which may be a sole proprietor; a payer's",
    how: "sealed under the employer's key; what has no employer under one of its own",
  },
  maybe: {
    what: 'legal names of employers, file names made of them, words of partners for their users',
    whose: "a business's, a sole proprietor's, a user's",
    how: "sealed under the employer's key, but for a company's name and what earlier releases stored",
  },
  secret: {
    what: 'hashes of secrets and tokens, places in the vault',
    whose: "nobody's",
    how: 'in plain text, masked to readers',
  },
} as const

type Kind = (typeof KINDS)[number]

/** Fields that the schemas declare as sealed or secret in some way, by event type. */
function declared(kind: Kind): Readonly<Record<string, string>> {
  const pairs = aggregates
    .flatMap(({ events }) => events)
    .map(({ name, schema }) => {
      const fields = sensitiveFields(schema).filter(({ sealed }) => kindOf(sealed) === kind)
      return [name, fields.map(({ steps }) => steps.map((step) => step ?? '*').join('.')).join(' ')] as const
    })
  return Object.fromEntries(pairs.filter(([, fields]) => fields !== ''))
}

function kindOf(sealed: SealedField | null): Kind {
  if (sealed === null) return 'secret'
  return sealed.mayBePlain ? 'maybe' : sealed.subject
}
