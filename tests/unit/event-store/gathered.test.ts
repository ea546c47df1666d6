import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Gathered } from '../../../infrastructure/gathered.ts'
import { deferred } from '../../support/http-hosts.ts'

/** How long a look is waited for, in milliseconds. */
const WAITED_FOR_MS = 2_000

describe('questions that are answered together', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate'] })
  })
  afterEach(() => vi.useRealTimers())

  /** Looks that end when they are told to. */
  function gathered(order?: 'ordered') {
    const looks: { questions: readonly number[]; end: () => void }[] = []
    const all = new Gathered<number, string>(async (questions) => {
      const end = deferred()
      looks.push({ questions, end: end.resolve })
      await end.promise
      return questions.join()
    }, order)
    return { looks, ask: (question: number) => all.ask(question) }
  }
  const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms)

  it.each([undefined, 'ordered'] as const)(
    'have one look, and the next after its end (%s)',
    async (order) => {
      const { looks, ask } = gathered(order)
      const first = [ask(1), ask(2)]
      await pass(1)
      const second = ask(3)
      await pass(1)
      expect(looks.map(({ questions }) => questions)).toEqual([[1, 2]])
      looks[0]!.end()
      await pass(1)
      expect(looks.map(({ questions }) => questions)).toEqual([[1, 2], [3]])
      looks[1]!.end()
      expect(await Promise.all([...first, second])).toEqual(['1,2', '1,2', '3'])
    },
  )

  it('have a second look beside one that takes long, and no third', async () => {
    const { looks, ask } = gathered()
    for (const question of [1, 2, 3]) {
      void ask(question)
      await pass(WAITED_FOR_MS + 1)
    }
    expect(looks.map(({ questions }) => questions)).toEqual([[1], [2]])
    looks[1]!.end()
    await pass(1)
    expect(looks.map(({ questions }) => questions)).toEqual([[1], [2], [3]])
    looks[0]!.end()
    void ask(4)
    await pass(1)
    expect(looks).toHaveLength(3)
    looks[2]!.end()
    await pass(1)
    expect(looks).toHaveLength(4)
  })

  it('never have a second look at once where looks write', async () => {
    const { looks, ask } = gathered('ordered')
    void ask(1)
    await pass(1)
    void ask(2)
    await pass(10 * WAITED_FOR_MS)
    expect(looks.map(({ questions }) => questions)).toEqual([[1]])
    looks[0]!.end()
    await pass(1)
    expect(looks.map(({ questions }) => questions)).toEqual([[1], [2]])
  })
})
