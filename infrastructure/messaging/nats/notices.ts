import type { Subscription } from 'nats'
import type { Notices, Topic } from '../../../application/ports/notices.ts'
import { InProcessNotices } from '../in-process/notices.ts'
import type { Nats } from './connection.ts'

const TOPICS: readonly Topic[] = ['work', 'position', 'progress']
/** Notices of one topic leave a process this far apart at the least, in milliseconds; the first one at once. */
const GAP_MS = 2

/** The subject of a topic; messages are empty. */
function noticeSubject(topic: Topic): string {
  return `compstream.notices.${topic}`
}

/**
 * Notices between processes: inside this one at once, to all others through core NATS. While the
 * server is away they are dropped; all listeners look when it is back.
 */
export class NatsNotices implements Notices {
  readonly #nats: Nats
  readonly #local = new InProcessNotices()
  #subscriptions: readonly Subscription[] = []
  readonly #stopHearing: () => void
  /** Topics announced a moment ago, and whether they are to be announced again. */
  readonly #cooling = new Map<Topic, { again: boolean; readonly timer: NodeJS.Timeout }>()
  #closed = false

  constructor(nats: Nats) {
    this.#nats = nats
    if (nats.connected) this.#subscribe()
    this.#stopHearing = nats.onChange((connected) => {
      if (!connected) return
      this.#subscribe()
      // whatever was told meanwhile was missed
      for (const topic of TOPICS) this.#local.wake(topic)
    })
  }

  /** Once: the client keeps subscriptions over lost connections. */
  #subscribe(): void {
    if (this.#subscriptions.length > 0) return
    this.#subscriptions = TOPICS.map((topic) =>
      this.#nats.connection.subscribe(noticeSubject(topic), { callback: () => this.#local.wake(topic) }),
    )
  }

  wake(topic: Topic): void {
    this.#local.wake(topic)
    const cooling = this.#cooling.get(topic)
    if (cooling) cooling.again = true
    else this.#notify(topic)
  }

  onWake(topic: Topic, listener: () => void): () => void {
    return this.#local.onWake(topic, listener)
  }

  close(): void {
    this.#closed = true
    this.#stopHearing()
    for (const { timer } of this.#cooling.values()) clearTimeout(timer)
    this.#cooling.clear()
    for (const subscription of this.#subscriptions) subscription.unsubscribe()
  }

  #notify(topic: Topic): void {
    // the client would keep what is published while the server is away, and tell old news later
    if (this.#closed || !this.#nats.connected) return
    try {
      this.#nats.connection.publish(noticeSubject(topic))
    } catch {
      // closing; a notice may be lost
    }
    const timer = setTimeout(() => {
      const again = this.#cooling.get(topic)?.again
      this.#cooling.delete(topic)
      if (again) this.#notify(topic)
    }, GAP_MS)
    timer.unref()
    this.#cooling.set(topic, { again: false, timer })
  }
}
