import { EventLogUnavailable } from '../../../application/ports/event-log.ts'

/** EventStoreDB cannot be reached or used; the message is one clear line without credentials. */
export class EventStoreUnavailable extends EventLogUnavailable {
  /** The address without the user: `host:port`. */
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

/**
 * A stream is not as the log leaves streams: it was deleted or cut, or another program wrote to it. The message says
 * which; only an operator can mend that.
 */
export class StreamTampered extends Error {
  constructor(stream: string, why: string) {
    super(`Stream ${stream} was changed behind the event log: ${why}`)
    this.name = 'StreamTampered'
  }
}

/** Whether trying again may help. */
export function passes(error: unknown): error is EventStoreUnavailable {
  return error instanceof EventStoreUnavailable && error.passes
}
