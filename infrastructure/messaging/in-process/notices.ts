import type { Notices, Topic } from '../../../application/ports/notices.ts'

/** Notices between the parts of one process, delivered at once. */
export class InProcessNotices implements Notices {
  readonly #listeners = new Map<Topic, Set<() => void>>()

  wake(topic: Topic): void {
    for (const listener of this.#listeners.get(topic) ?? []) listener()
  }

  onWake(topic: Topic, listener: () => void): () => void {
    const listeners = this.#listeners.get(topic) ?? new Set()
    this.#listeners.set(topic, listeners)
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }
}
