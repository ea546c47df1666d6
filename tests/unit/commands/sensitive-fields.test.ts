import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { masked, maskedState, opened, UNREADABLE } from '../../../application/commands/sealed-fields.ts'
import { sealFields } from '../../../application/commands/sealing.ts'
import { ERASED } from '../../../application/ports/personal-data.ts'
import { aggregates } from '../../../domain/catalogue.ts'
import { eventType } from '../../../domain/kernel/event-type.ts'
import {
  isSealed,
  type Sealed,
  sealed,
  secret,
  sensitiveFields,
  sensitiveValues,
} from '../../../domain/kernel/sealed.ts'
import { PLAIN_TEXTS } from '../../../domain/plain-texts.ts'
import { sampleFitting } from '../../support/schema-values.ts'

const types = aggregates.flatMap(({ events }) => events)
const MASK = '•••'
const ID = '0123456789abcdef01234567'

const nameOf = (steps: readonly (string | number | null)[]) => steps.map((step) => step ?? '*').join('.')

/** Fields of events that hold free text: `<type>.<field>`, `*` for each item of a list. */
function plainTexts(schema: z.core.$ZodType, path: string): string[] {
  const { def } = (schema as z.core.$ZodTypes)._zod
  switch (def.type) {
    case 'object':
      return Object.entries(def.shape).flatMap(([name, one]) => plainTexts(one, `${path}.${name}`))
    case 'array':
      return plainTexts(def.element, `${path}.*`)
    case 'record':
      return plainTexts(def.valueType, `${path}.*`)
    case 'tuple':
      return def.items.flatMap((one, index) => plainTexts(one, `${path}.${index}`))
    case 'union':
      return def.options.flatMap((one) => plainTexts(one, path))
    case 'optional':
    case 'nullable':
      return plainTexts(def.innerType, path)
    case 'unknown':
      return [path]
    case 'string':
      // an id, or whatever else has a form that leaves no room for a name
      return def.checks?.length || 'format' in def ? [] : [path]
    default:
      return []
  }
}

/** The keys that are declared, as {@link plainTexts} names them. */
const declared = new Set(
  types.flatMap((type) => sensitiveFields(type.schema).map(({ steps }) => `${type.name}.${nameOf(steps)}`)),
)

/** Fields, as {@link plainTexts} names them, by the type of the event. */
function byEvent(fields: Iterable<string>): Readonly<Record<string, string>> {
  const found: Record<string, string> = {}
  for (const one of [...fields].sort()) {
    const [, type, field] = /^(\w+)\.(.*)$/.exec(one)!
    found[type!] = `${found[type!] ?? ''} ${field}`.trimStart()
  }
  return found
}

describe('the events', () => {
  test('declare these fields as sealed or secret', () => {
    expect(byEvent(declared)).toEqual({
      AchAccountCorrected: 'account.account_ref',
      AchAccountCreated: 'account.account_ref',
      AgentCredentialIssued: 'key_hash',
      ApiClientIssued: 'secret_hash',
      ApiClientSecretRotated: 'secret_hash',
      BankAccountCreated: 'user_id',
      BankConnectionHandleIssued: 'handle_hash token_ref',
      BankConnectionLinked: 'user_id',
      BankDebitCreated: 'account.account_ref',
      BankTransactionsReceived: 'changed.*.description',
      EmployeeChangesRecorded: 'changes.*.record',
      EmployerDetailsChanged: 'address contact_email legal_name',
      EmployerRegistered: 'address contact_email fein legal_name',
      FinancingInvitationBegun: 'to to_fingerprint',
      FinancingRequested:
        'insured.address insured.business_name insured.city insured.state ' +
        'insured.zip_code request_fingerprint',
      FinancingSessionCreated:
        'access_token_hash checkout_token_hash customer.email customer.name ' +
        'customer.phone request_fingerprint',
      FinancingSettingsChanged: 'settings.recipients.*.address settings.recipients.*.fingerprint',
      InboundConnectionOpened: 'secret_ref',
      IntakeReceived: 'employer owners.*.person',
      OperatorCreated: 'name token_hash',
      OperatorTokenRotated: 'token_hash',
      PayerAccountCorrected: 'account.account_ref',
      PaymentLinkCreated: 'customer.email customer.name customer.phone',
      PaymentSessionCreated: 'customer.email customer.name customer.phone token_hash',
      PaymentSessionDebitArranged: 'account.account_ref',
      PaymentSessionInvited: 'to',
      PayrollFileProcessed: 'validation.failures.*.person',
      PayrollFileReceived: 'file_name rows.*.person',
      PayrollRowsRecorded: 'rows.*.person',
      PayrollRowsValidated: 'failures.*.person',
      WebhookSecretRotated: 'former_ref secret_ref',
      WebhookSubscriptionDeleted: 'former_ref',
      WebhookSubscriptionRegistered: 'secret_ref',
    })
  })

  test('hold no other text than what the list of plain texts says whose it may be', () => {
    const texts = types.flatMap(({ name, schema }) => plainTexts(schema, name))
    // a new field stands there only when it is nobody's: else declare it with `sealed` or `secret`
    const listed = PLAIN_TEXTS.flatMap(({ fields }) =>
      Object.entries(fields).flatMap(([type, names]) => names.split(' ').map((name) => `${type}.${name}`)),
    )
    expect(byEvent(listed)).toEqual(byEvent(texts.filter((one) => !declared.has(one))))
  })

  test.each(types.filter(({ schema }) => sensitiveFields(schema).some((field) => field.sealed)))(
    'of type $name are sealed, masked and opened as they declare',
    async (type) => {
      const data = sampleFitting(type.schema, type.name) as Record<string, unknown>
      for (const { holder, key } of sensitiveValues(type.schema, data)) holder[key] = `plain ${key}`
      const subjects = (kind: string) => `${kind}/${ID}`
      const whole = await sealFields(vault, type, structuredClone(data), ({ path }) =>
        subjects(
          sensitiveFields(type.schema).find((field) => field.steps.length === path.length)!.sealed!.subject,
        ),
      )
      expect(type.schema.safeParse(whole).success).toBe(true)
      const values = sensitiveValues(type.schema, whole).filter((field) => field.sealed)
      expect(values.length).toBeGreaterThan(0)
      for (const { value } of values) expect(isSealed(value)).toBe(true)
      const stored = { schema: type.schema, data: whole }
      expect(JSON.stringify(masked(stored))).not.toMatch(/sld1|plain/)
      const { data: shown, revealed } = await opened(vault, [stored])
      expect(revealed).toBe(values.length)
      expect(shown).toEqual([data])
    },
  )
})

describe('what values are bound to is what stored values were bound to', () => {
  const file_id = ID
  const one = `sld1.person/${ID}.AAAA`
  const employer = `sld1.employer/${ID}.AAAA`
  test.each([
    ['EmployerRegistered', { employer_id: ID, fein: employer }, [`employer-${ID}|EmployerRegistered|fein`]],
    [
      'EmployerDetailsChanged',
      { employer_id: ID, address: employer, contact_email: employer },
      [`employer-${ID}|EmployerRegistered|address`, `employer-${ID}|EmployerRegistered|contact_email`],
    ],
    [
      'PaymentLinkCreated',
      { payment_link_id: ID, customer: { name: employer, phone: employer } },
      [
        `paymentLink-${ID}|PaymentLinkCreated|customer.name`,
        `paymentLink-${ID}|PaymentLinkCreated|customer.phone`,
      ],
    ],
    [
      'PayrollRowsRecorded',
      { file_id, rows: [{ n: 501 }, { n: 502, person: one }] },
      [`payrollFile-${ID}|PayrollRowsRecorded|rows.502.person`],
    ],
    [
      'PayrollFileReceived',
      { file_id, rows: [{ n: 7, person: one }] },
      [`payrollFile-${ID}|PayrollRowsRecorded|rows.7.person`],
    ],
    [
      'PayrollFileReceived',
      { file_id, file_name: employer },
      [`payrollFile-${ID}|PayrollFileReceived|file_name`],
    ],
    [
      'EmployerDetailsChanged',
      { employer_id: ID, legal_name: 'Ada Moss' },
      [`employer-${ID}|EmployerRegistered|legal_name`],
    ],
    [
      'PayrollRowsValidated',
      { file_id, failures: [{ row_number: 9, person: one }] },
      [`payrollFile-${ID}|PayrollRowsRecorded|rows.9.person`],
    ],
    [
      'PayrollFileProcessed',
      { file_id, validation: { failures: [{ row_number: 9, person: one }] } },
      [`payrollFile-${ID}|PayrollRowsRecorded|rows.9.person`],
    ],
    [
      'IntakeReceived',
      { intake_id: ID, employer, owners: [{}, { person: one }] },
      [`intake-${ID}|IntakeReceived|employer`, `intake-${ID}|IntakeReceived|owners.1.person`],
    ],
    [
      'EmployeeChangesRecorded',
      { file_id, chunk: 2, changes: [{}, { record: one }] },
      [`employeeSync-${ID}|EmployeeChangesRecorded|chunks.2.changes.1.record`],
    ],
  ])('%s', (name, data, contexts) => {
    const { schema } = types.find((type) => type.name === name)!
    expect(sensitiveValues(schema, data).map((place) => place.sealed!.boundTo(place))).toEqual(contexts)
  })
})

describe('declarations', () => {
  const Told = eventType('Told', {
    id: z.string(),
    who: z.record(
      z.string(),
      z.union([z.number(), sealed({ subject: 'person', boundTo: ({ path }) => path.join('/') })]),
    ),
    token: z.tuple([z.string(), secret().nullable()]),
  })
  const stored = `sld1.person/${ID}.AAAA` as Sealed
  const data = { id: stored, who: { a: 1, b: stored }, token: ['x', 'hash'] as [string, string] }

  test('are found in records, unions and tuples', () => {
    expect(sensitiveValues(Told.schema, data).map(({ path, value }) => [path.join('.'), value])).toEqual([
      ['who.b', stored],
      ['token.1', 'hash'],
    ])
    expect(masked({ schema: Told.schema, data })).toEqual({
      id: stored,
      who: { a: 1, b: MASK },
      token: ['x', MASK],
    })
    expect(data.who.b).toBe(stored)
  })

  test('refuse a key of another kind of subject', async () => {
    const draft = { who: { b: 'plain' } }
    await expect(sealFields(vault, Told, draft, () => `employer/${ID}`)).rejects.toThrow(
      'Told: who.b is sealed under the key of a person',
    )
  })

  test('cannot hide in a part that nobody looks into', () => {
    expect(() => sensitiveFields(z.object({ at: z.date() }))).toThrow('A schema of kind date in an event')
  })

  test('hide no other value where one does not open', async () => {
    const torn = `sld1.person/${ID}.BBBB` as Sealed
    const open = async (items: readonly { value: Sealed }[]) => {
      if (items.every(({ value }) => value !== torn)) return items.map(() => 'plain')
      throw Object.assign(new Error('torn'), { name: 'SealedValueError' })
    }
    const event = { schema: Told.schema, data: { ...data, who: { a: torn, b: stored } } }
    const { data: shown } = await opened({ open }, [event])
    expect(shown).toMatchObject([{ who: { a: UNREADABLE, b: 'plain' } }])
  })

  test('mask what of an event stands in a state, whatever it is called there', () => {
    const sensitive = new Set(sensitiveValues(Told.schema, data).map(({ value }) => value))
    const state = { told: [{ hashed: 'hash', n: 1 }], by: { other: stored }, none: null }
    expect(maskedState(state, sensitive)).toEqual({
      told: [{ hashed: MASK, n: 1 }],
      by: { other: MASK },
      none: null,
    })
  })
})

/** Seals by writing down what was asked for; opens only what is bound to the same place. */
const vault = {
  seal: async (items: readonly { subject: string; context: string; plaintext: string }[]) =>
    items.map(
      ({ subject, context, plaintext }) =>
        `sld1.${subject}.${Buffer.from(JSON.stringify([context, plaintext])).toString('base64url')}` as Sealed,
    ),
  open: async (items: readonly { value: Sealed; context: string }[]) =>
    items.map(({ value, context }) => {
      const [boundTo, text] = JSON.parse(Buffer.from(value.split('.')[2]!, 'base64url').toString())
      return boundTo === context ? String(text) : ERASED
    }),
}
