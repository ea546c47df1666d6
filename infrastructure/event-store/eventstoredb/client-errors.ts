import {
  AccessDeniedError,
  convertToCommandError,
  MaxAppendSizeExceededError,
  StreamDeletedError,
  WrongExpectedVersionError,
} from '@eventstore/db-client'
import { EventLogUnavailable } from '../../../application/ports/event-log.ts'
import { EventStoreRefused, EventStoreUnavailable, StreamTampered } from './errors.ts'

/** gRPC's status codes that mean no: INVALID_ARGUMENT, PERMISSION_DENIED, UNIMPLEMENTED, UNAUTHENTICATED. */
const REFUSALS: readonly unknown[] = [3, 7, 12, 16]
/** gRPC's status code for whatever the server failed at. */
const UNKNOWN = 2

/** What an error of the client means. A {@link WrongExpectedVersionError} is left as it is. */
export function failureOf(target: string, error: unknown): Error {
  if (error instanceof EventLogUnavailable || error instanceof StreamTampered) return error
  const known = commandError(error)
  if (known instanceof WrongExpectedVersionError) return known
  if (known instanceof StreamDeletedError) return new StreamTampered(known.streamName, 'it was deleted')
  if (known instanceof MaxAppendSizeExceededError) {
    return new EventStoreRefused(target, 'its limit for one append is below 1 MiB')
  }
  const isRefusal =
    known instanceof AccessDeniedError || REFUSALS.includes((known as { code?: unknown }).code)
  return new (isRefusal ? EventStoreRefused : EventStoreUnavailable)(target, oneLine(known))
}

/** The server reads only from positions of events; asked for another, it fails in its own ways. */
export function mayBeUnknownPosition(error: unknown): boolean {
  return (error as { code?: unknown }).code === UNKNOWN
}

function commandError(error: unknown): Error {
  try {
    return error instanceof Error ? convertToCommandError(error) : new Error(String(error))
  } catch {
    // the client expects more of an answer than there is
    return error as Error
  }
}

const IN_OTHER_WORDS: readonly (readonly [RegExp, string])[] = [
  [/^\d+ [A-Z_]+: /, ''],
  [/^No connection established\. Last error: (Error: )?/, ''],
  [/ \(\d{4}-\d\d-\d\dT[\d:.]+Z\)/, ''],
  [/^Failed to discover after \d+ attempts\.$/, 'no node of the cluster tells who leads it'],
  [/^Unauthenticated$/i, 'the user or the password is wrong'],
  [/^Access[ -]Denied$/i, 'access is denied to this user'],
]

/** What went wrong in one line; never the connection string. */
export function oneLine(error: unknown): string {
  const { message, type } = error as { message?: string; type?: string }
  const text = IN_OTHER_WORDS.reduce(
    (words, [theirs, ours]) => words.replace(theirs, ours),
    message || type || 'no reason was given',
  )
    .replace(/\s*Resolution note:.*$/s, '')
    .replace(/\s+/g, ' ')
    .trim()
  return text.length > 300 ? `${text.slice(0, 300)}…` : text
}
