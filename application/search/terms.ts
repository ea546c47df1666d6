import { isId } from '../../domain/kernel/ids.ts'
import { normalizeFein } from '../../domain/parties/fein.ts'
import { isClientId } from '../access/client-authentication.ts'
import { comparable, type Fingerprinted, foundBy } from '../commands/found-by.ts'
import type { PersonalData } from '../ports/personal-data.ts'

/** Characters of a search, and of what is kept to be found, at the most. */
export const MAX_SEARCH = 200
/** Words of a name from which it is found. */
const MAX_WORDS = 12

/** What a text that somebody looks for may be. */
export interface Sought {
  /** An id of the service; null: it is none. */
  readonly id: string | null
  /** Of an API client. */
  readonly clientId: string | null
  /** `XX-XXXXXXX`. */
  readonly fein: string | null
  /** 15 digits of an entry in a file for the bank. */
  readonly trace: string | null
  /** Beginning of a name, in the form of {@link comparable}. */
  readonly name: string
  /** Terms that it may be, exactly. */
  readonly terms: readonly string[]
  /** The one of them that it is as an idempotency key, which nothing ever loses. */
  readonly keyTerm: string
}

/** Reads what somebody looks for. @param text up to {@link MAX_SEARCH} characters, not all white space. */
export function readSearch(personalData: Pick<PersonalData, 'fingerprint'>, text: string): Sought {
  const q = text.trim()
  const term = (what: Fingerprinted) => `#${foundBy(personalData, what, q)}`
  const keyTerm = term('idempotency_key')
  return {
    id: isId(q) ? q : null,
    clientId: isClientId(q) ? q : null,
    fein: normalizeFein(q),
    trace: /^\d{15}$/.test(q) ? q : null,
    name: comparable(q),
    terms: [q, term('email'), term('legal_name'), keyTerm],
    keyTerm,
  }
}

/** What a name is found by: itself from each of its words on, in lower case. */
export function beginningsOf(name: string): readonly string[] {
  const words = comparable(name).slice(0, MAX_SEARCH).split(' ')
  return [...new Set(words.slice(0, MAX_WORDS).map((_, from) => words.slice(from).join(' ')))]
}

/** Whether a search that begins so finds a name. */
export function isBeginningOf(sought: string, name: string): boolean {
  return beginningsOf(name).some((beginning) => beginning.startsWith(sought))
}
