import { until } from './workbench.ts'

/**
 * Does `work` while senders send one thing after another, until it is done. The first failure of a sender ends both
 * and is thrown.
 * @param send the n-th thing of a sender, both counted from 0.
 * @param work gets a function that waits until so many more have been sent.
 */
export async function underLoad<T>(
  senderCount: number,
  send: (sender: number, n: number) => Promise<void>,
  work: (more: (count: number) => Promise<void>) => Promise<T>,
): Promise<T> {
  let sent = 0
  let over = false
  const sender = async (_: unknown, index: number) => {
    try {
      for (let n = 0; !over; n += 1) {
        await send(index, n)
        sent += 1
      }
    } finally {
      over = true
    }
  }
  const senders = Promise.all(Array.from({ length: senderCount }, sender))
  // it is looked at below
  senders.catch(() => undefined)
  try {
    return await work(async (count) => {
      const enough = sent + count
      await until(() => sent >= enough || over)
    })
  } finally {
    over = true
    await senders
  }
}
