import { EventLogUnavailable } from '../../../application/ports/event-log.ts'

/** EventStoreDB cannot be reached or used; the message is one clear line without credentials. */
export class EventStoreUnavailable extends EventLogUnavailable {
  /** Where without who: `host:port`. */
  readonly target: string
  constructor(target: string, why: string, options: { passes: boolean } = { passes: true }) {
    super(`EventStoreDB at ${target}: ${why}`, options)
    this.name = 'EventStoreUnavailable'
    this.target = target
  }
}

/** The server refuses what is asked for good, such as a wrong password; trying again does not help. */
export class EventStoreRefused extends EventStoreUnavailable {
  override readonly name = 'EventStoreRefused'
  constructor(target: string, why: string) {
    super(target, why, { passes: false })
  }
}

/** The server says that the stream is not at the expected revision. */
export class Conflict extends Error {
  override readonly name = 'Conflict'
}

/**
 * A stream is not as the log leaves streams: it was deleted or cut, or another program wrote to it. The message says
 * which; nobody but a person can mend that.
 */
export class StreamTampered extends Error {
  constructor(stream: string, why: string) {
    super(`Stream ${stream} was changed behind the event log: ${why}`)
    this.name = 'StreamTampered'
  }
}

const PERMISSION_DENIED = 7
const UNAUTHENTICATED = 16
const INVALID_ARGUMENT = 3
const UNIMPLEMENTED = 12
const ABORTED = 10
const UNKNOWN = 2

/** What the server answered, as far as it is an answer and not a lost connection. */
export function isRefusal(error: unknown): boolean {
  const { code, type } = error as { code?: unknown; type?: unknown }
  if (type === 'access-denied' || type === 'invalid-argument') return true
  return (
    code === PERMISSION_DENIED ||
    code === UNAUTHENTICATED ||
    code === INVALID_ARGUMENT ||
    code === UNIMPLEMENTED
  )
}

/**
 * Whether an error says nothing about the connection: so end a subscription that was too slow, and one that begins at
 * a place that is none.
 */
export function isOfOneCall(error: unknown): boolean {
  const { code, details } = error as { code?: unknown; details?: unknown }
  return code === ABORTED || (code === UNKNOWN && details === 'Exception was thrown by handler.')
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
  const { message, details, code, type } = error as {
    message?: string
    details?: string
    code?: number
    type?: string
  }
  const said = details || message || type || `gRPC status ${code ?? 'unknown'}`
  const text = IN_OTHER_WORDS.reduce((words, [theirs, ours]) => words.replace(theirs, ours), said)
    .replace(/\s*Resolution note:.*$/s, '')
    .replace(/\s+/g, ' ')
    .trim()
  return text.length > 300 ? `${text.slice(0, 300)}…` : text
}
