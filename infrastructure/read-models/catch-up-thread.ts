import { once } from 'node:events'
import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'
import { ProjectionStoreError } from '../../projections/runtime/failures.ts'
import type { Arrears, CatchUp, Progress } from '../../projections/runtime/projection-runner.ts'

const BUILT = createRequire(import.meta.url)

/** What a thread is started with. */
export interface CatchUpTask {
  readonly databaseUrl: string
  /** Null: the database holds the log. */
  readonly eventStoreUrl: string | null
  readonly technicalDeadlineScale: number
  readonly arrears: Arrears
}

/** What a thread says. What it is told, of whatever kind, is to stand still. */
export type CatchUpMessage =
  /** From here on the thread stores, and stands still when it is told to. */
  | { readonly kind: 'opened' }
  | { readonly kind: 'disturbed'; readonly reason: string }
  | { readonly kind: 'reached'; readonly position: bigint }
  | { readonly kind: 'stored'; readonly events: number; readonly ms: number }
  | {
      readonly kind: 'failed'
      readonly category: ProjectionStoreError['category']
      readonly message: string
    }

/**
 * Catches up on generations in a thread, one at a time: the others wait. A thread that ends too soon failed in a way that
 * passes: another one goes on from the checkpoint.
 * @param disturbed hears of a failure in a thread that the thread survives.
 */
export function inThreads(
  settings: Omit<CatchUpTask, 'arrears'>,
  disturbed: (reason: string) => void,
): CatchUp {
  let running: Promise<unknown> | null = null
  return async (arrears, progress, signal) => {
    while (running && !signal.aborted) {
      const waiting = new AbortController()
      const aborted = once(signal, 'abort', { signal: waiting.signal }).catch(() => undefined)
      await Promise.race([running, aborted])
      waiting.abort()
    }
    if (signal.aborted) return
    const catchingUp = inThread({ ...settings, arrears }, progress, disturbed, signal)
    running = catchingUp
      .catch(() => undefined)
      .finally(() => {
        running = null
      })
    await catchingUp
  }
}

async function inThread(
  workerData: CatchUpTask,
  progress: Progress,
  disturbed: (reason: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const thread = new Worker(BUILT.resolve('#catch-up'), { workerData })
  let isOpen = false
  // before it stores anything there is nothing to wait for
  const standStill = () => (isOpen ? thread.postMessage(null) : void thread.terminate())
  signal.addEventListener('abort', standStill)
  try {
    await new Promise<void>((resolve, reject) => {
      const fail = (category: ProjectionStoreError['category'], message: string) =>
        reject(new ProjectionStoreError(category, message))
      thread.on('message', (message: CatchUpMessage) => {
        if (message.kind === 'opened') isOpen = true
        else if (message.kind === 'disturbed') disturbed(message.reason)
        else if (message.kind === 'reached') progress.reached(message.position)
        else if (message.kind === 'stored') progress.stored(message.events, message.ms)
        else fail(message.category, message.message)
      })
      thread.on('error', (error: Error & { code?: string }) =>
        fail('transient', `the thread ended: ${error.code ?? error.name}`),
      )
      thread.on('exit', (code) =>
        code === 0 || (signal.aborted && !isOpen)
          ? resolve()
          : fail('transient', `the thread ended with code ${code}`),
      )
    })
  } finally {
    signal.removeEventListener('abort', standStill)
  }
}
