import { sentEntries } from '../banking/files/sent-entries.ts'
import type { Application } from '../commands/application.ts'
import { feinReservation, holderOf } from '../commands/reservations.ts'
import { untilCurrent } from '../queries/find-current.ts'
import { type Parameter, type Reading, statement } from '../queries/statement.ts'
import { readSearch, type Sought } from './terms.ts'
import { type Parts, THINGS } from './things.ts'

/** Hits of one kind at the most. */
const MOST_OF_KIND = 10
/** Hits in all at the most. */
const MOST = 50
/** Rows of one exact term that are looked at: each leads to a thing that is read. */
const MOST_TERMS = 50
/** What is after every text that begins with another one. */
const LAST = '\u{10ffff}'
/** Kinds that have names which a search may begin. */
const NAMED = [
  'tenant',
  'carrier',
  'payroll_company',
  'employer',
  'policy',
  'api_client',
  'payroll_file',
  'bank_file',
  'bank_report',
]
/** Kinds whose things are read models' alone: what was stored before a search must be there. */
const PROJECTIONS = [
  'search-terms',
  'payroll-files',
  'legacy-collections',
  'directory',
  'operator-alerts',
  'bank-files',
]

/** What a search finds. */
export interface Hit {
  readonly kind: string
  readonly id: string
  readonly label: string
}

/** A thing that may be meant, and by what it was found. */
interface Candidate {
  readonly kind: string
  readonly id: string
  /** The record must still have what is sought: a name, or a personal value. */
  readonly mustStill: boolean
}

const OF_TERMS = statement(
  'search-terms',
  (db, $: Parameter<{ readonly term: string; readonly limit: number }>) =>
    db
      .selectFrom('search_terms')
      .select(['term', 'kind', 'id'])
      .where('term', '=', $('term'))
      .orderBy('kind')
      .orderBy('id')
      .limit($('limit')),
)
interface Beginning {
  readonly kind: string
  readonly from: string
  readonly to: string
  readonly limit: number
}
const OF_NAMES = statement('search-names', (db: Reading, $: Parameter<Beginning>) =>
  db
    .selectFrom('search_names')
    .select(['kind', 'id'])
    .where('kind', '=', $('kind'))
    .where('name', '>=', $('from'))
    .where('name', '<', $('to'))
    .orderBy('kind')
    .orderBy('name')
    .orderBy('id')
    .limit($('limit')),
)

/**
 * Finds things by an id of theirs, a name, or a value that only a keyed fingerprint is kept of. Everything is looked up by
 * an index and for a few rows, whatever is asked for; what was found is then held against what it has now.
 * @param text up to `MAX_SEARCH` characters, not all white space; no character has a meaning of its own.
 * @returns at most 10 of a kind and 50 in all; nothing personal.
 * @throws ReadModelsLate
 */
export async function search(
  app: Parts & Pick<Application, 'registry'>,
  text: string,
): Promise<readonly Hit[]> {
  const sought = readSearch(app.personalData, text)
  await untilCurrent(app, ...PROJECTIONS)
  const parts = await Promise.all([
    byId(sought),
    byFein(app, sought),
    byTerms(app, sought),
    byTrace(app, sought),
    byNames(app, sought),
  ])
  const found = new Map<string, Candidate>()
  for (const candidate of parts.flat()) {
    const key = `${candidate.kind} ${candidate.id}`
    const known = found.get(key)
    if (!known || (known.mustStill && !candidate.mustStill)) found.set(key, candidate)
  }
  const hits = await Promise.all([...found.values()].map((one) => hitOf(app, one, sought)))
  const counts = new Map<string, number>()
  return hits
    .filter((hit) => hit !== null)
    .filter(({ kind }) => {
      const count = (counts.get(kind) ?? 0) + 1
      counts.set(kind, count)
      return count <= MOST_OF_KIND
    })
    .slice(0, MOST)
}

async function hitOf(app: Parts, { kind, id, mustStill }: Candidate, sought: Sought): Promise<Hit | null> {
  const found = await THINGS[kind]?.(app, id)
  if (!found || (mustStill && found.isStill && !(await found.isStill(sought)))) return null
  return { kind, id, label: found.label }
}

/** An id may be that of a thing of any kind: the log is asked, which costs as much as one look. */
function byId({ id, clientId }: Sought): readonly Candidate[] {
  if (clientId !== null) return [{ kind: 'api_client', id: clientId, mustStill: false }]
  return id === null ? [] : Object.keys(THINGS).map((kind) => ({ kind, id, mustStill: false }))
}

async function byFein(app: Parts, { fein }: Sought): Promise<readonly Candidate[]> {
  if (fein === null) return []
  const holders = await Promise.all(
    (['live', 'sandbox'] as const).map((environment) =>
      holderOf(app, feinReservation(app.personalData, environment, fein)),
    ),
  )
  return holders.filter((id) => id !== null).map((id) => ({ kind: 'employer', id, mustStill: true }))
}

async function byTerms(app: Parts, { terms, keyTerm }: Sought): Promise<readonly Candidate[]> {
  const rows = await Promise.all(
    terms.map((term) =>
      app.read.query(OF_TERMS, { term, limit: term === keyTerm ? MOST_OF_KIND : MOST_TERMS }),
    ),
  )
  return rows.flat().flatMap(({ term, kind, id }) => {
    const mustStill = term.startsWith('#') && term !== keyTerm
    const kinds = kind === 'any' ? Object.keys(THINGS) : [kind]
    return kinds.map((one) => ({ kind: one, id, mustStill }))
  })
}

async function byTrace(
  app: Parts & Pick<Application, 'registry'>,
  { trace }: Sought,
): Promise<readonly Candidate[]> {
  if (trace === null) return []
  const entries = await sentEntries(app)(trace)
  return entries.flatMap(({ fileId, kind, id }) => [
    { kind: 'bank_file', id: fileId, mustStill: false },
    ...(kind === 'debit' ? [{ kind: 'debit', id, mustStill: false }] : []),
  ])
}

async function byNames(app: Parts, { name }: Sought): Promise<readonly Candidate[]> {
  const pages = await Promise.all(
    NAMED.map((kind) =>
      app.read.query(OF_NAMES, { kind, from: name, to: `${name}${LAST}`, limit: MOST_OF_KIND }),
    ),
  )
  return pages.flat().map(({ kind, id }) => ({ kind, id, mustStill: true }))
}
