import {
  type AllStreamSubscription,
  END,
  EVENT_TYPE,
  jsonEvent,
  WrongExpectedVersionError,
} from '@eventstore/db-client'
import { technicalDeadline } from '../../../application/commands/technical-deadlines.ts'
import type { Appends } from './appends.ts'
import type { Connection } from './client.ts'
import { EventStoreRefused } from './errors.ts'

/** How long the server may take to confirm a subscription, in milliseconds. */
const SILENCE_LIMIT_MS = 10_000
/** A name that no event type can have. */
const NO_TYPE = 'no event at all'
/** Nothing is ever stored in it: no stream has such a revision. */
const PROBED = { stream: 'compstream-probe', revision: 2 ** 40, bytes: 2 } as const

/** Whether what was read since is everything that was stored before. */
export type IsComplete = () => boolean

/**
 * Tells whether a server's answers to reads are complete. One that was just started answers before it has indexed the
 * end of its log, also who asks for the leader: streams, and the log, seem to end earlier than they do. It takes appends
 * only after that. So an append that is refused by its revision tells that reads are complete, for as long as the
 * connection lasts; a subscription without events tells when that breaks.
 */
export class ReadCompleteness {
  readonly #connection: Connection
  readonly #appends: Appends
  readonly #closing: AbortSignal
  readonly #reconnected: () => void
  #isFirst = true
  #confirming: Promise<IsComplete> | undefined

  /**
   * @param connection that is read from.
   * @param appends to the same server.
   * @param reconnected told each time but the first that reads are complete.
   */
  constructor(connection: Connection, appends: Appends, closing: AbortSignal, reconnected: () => void) {
    this.#connection = connection
    this.#appends = appends
    this.#closing = closing
    this.#reconnected = reconnected
  }

  /**
   * Waits until what is read from now on is complete.
   * @returns whether the same holds for what was read by the time it is called.
   * @throws what the client fails with, EventStoreUnavailable; the caller asks again.
   */
  confirmed(): Promise<IsComplete> {
    if (!this.#confirming) {
      const confirming = this.#confirm(() => {
        if (this.#confirming === confirming) this.#confirming = undefined
      })
      this.#confirming = confirming
    }
    return this.#confirming
  }

  async #confirm(broken: () => void): Promise<IsComplete> {
    let isUnbroken = true
    const subscription = this.#connection.client.subscribeToAll({
      fromPosition: END,
      requiresLeader: true,
      filter: { filterOn: EVENT_TYPE, regex: `^${NO_TYPE}$`, checkpointInterval: 1_000 },
    })
    const end = () => subscription.unsubscribe().catch(() => undefined)
    const lose = () => {
      isUnbroken = false
      this.#closing.removeEventListener('abort', end)
      broken()
    }
    subscription.on('error', lose).on('end', lose).on('close', lose).resume()
    this.#closing.addEventListener('abort', end)
    try {
      await untilConfirmed(subscription)
      await this.#untilAppendsAreTaken()
    } catch (error) {
      lose()
      await end()
      throw error
    }
    if (!this.#isFirst) this.#reconnected()
    this.#isFirst = false
    return () => isUnbroken
  }

  async #untilAppendsAreTaken(): Promise<void> {
    try {
      await this.#appends.append({ ...PROBED, events: [jsonEvent({ type: NO_TYPE, data: {} })] })
    } catch (error) {
      // an append says that the user may not append
      if (!(error instanceof WrongExpectedVersionError || error instanceof EventStoreRefused)) throw error
    }
  }
}

function untilConfirmed(subscription: AllStreamSubscription): Promise<void> {
  return new Promise((resolve, reject) => {
    const silence = setTimeout(() => reject(new Error('no answer')), technicalDeadline(SILENCE_LIMIT_MS))
    const done = (settle: () => void) => {
      clearTimeout(silence)
      settle()
    }
    subscription
      .on('confirmation', () => done(resolve))
      .on('error', (error: Error) => done(() => reject(error)))
      .on('close', () => done(() => reject(new Error('the subscription ended'))))
  })
}
