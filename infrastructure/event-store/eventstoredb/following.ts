import { LOG_START } from '../../../application/ports/event-log.ts'
import type { EventStoreConnection, ReadCall } from './connection.ts'
import { EventStoreUnavailable } from './errors.ts'
import { logRequest } from './requests.ts'
import type { RecordedEvent } from './wire.ts'

/** What a subscription tells of: an event, or a position up to which there was nothing more. */
export interface Follower {
  event(event: RecordedEvent): void
  checkpoint?(position: bigint): void
  /** Everything that was in the log has been told. */
  caughtUp?(): void
}

/** A subscription of the server's. It ends with the first failure; whoever wants more subscribes again. */
export interface Following {
  /** Rejects with why it ended; resolves when it was ended here. */
  readonly ended: Promise<void>
  /** On the clock of `performance.now()`: when the server was last heard of. */
  readonly heardAt: () => number
  pause(): void
  resume(): void
  /** Counts it as failed: the server is there and silent. What is asked next connects afresh. */
  giveUp(): void
  end(): void
}

/** Follows the log from after a position on. @throws EventStoreUnavailable */
export async function follow(
  connection: EventStoreConnection,
  options: { after: bigint; types?: readonly string[] | undefined },
  follower: Follower,
): Promise<Following> {
  const { after, types } = options
  let call: ReadCall
  try {
    call = await connection.read(
      logRequest({ from: after === LOG_START ? 'start' : after, count: 'follow', types }),
    )
  } catch (error) {
    throw connection.failureOf(error)
  }
  let heardAt = performance.now()
  let over = false
  let fail: (error: Error) => void = () => undefined
  const ended = new Promise<void>((resolve, reject) => {
    fail = (error) => reject(connection.failureOf(error, call))
    call.on('data', (message) => {
      if (over) return
      heardAt = performance.now()
      if (message.kind === 'event') follower.event(message)
      else if (message.kind === 'checkpoint') follower.checkpoint?.(message.position)
      else if (message.kind === 'caught up') follower.caughtUp?.()
    })
    call.on('error', (error) => {
      if (over) resolve()
      else fail(error)
    })
    call.on('end', () => {
      if (over) resolve()
      else reject(new EventStoreUnavailable(connection.target, 'the subscription ended'))
    })
  })
  // whoever waits for it hears of it all the same
  ended.catch(() => undefined)
  const end = () => {
    if (over) return
    over = true
    call.resume()
    setImmediate(() => call.cancel())
  }
  return {
    ended,
    heardAt: () => heardAt,
    pause: () => void call.pause(),
    resume: () => {
      heardAt = performance.now()
      call.resume()
    },
    giveUp: () => {
      if (over) return
      fail(new Error('no answer'))
      end()
    },
    end,
  }
}
