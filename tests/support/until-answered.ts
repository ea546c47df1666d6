import { ServiceUnavailable } from '../../application/ports/unavailable.ts'

/** Repeats what a busy machine may not do within the short patience under test, although nothing is wrong. */
export async function untilAnswered<T>(attempt: () => Promise<T>): Promise<T> {
  for (const deadline = performance.now() + 240_000; ; ) {
    try {
      return await attempt()
    } catch (error) {
      if (!(error instanceof ServiceUnavailable) || performance.now() > deadline) throw error
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }
}
