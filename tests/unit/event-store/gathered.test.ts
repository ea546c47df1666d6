import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Gathered } from '../../../infrastructure/gathered.ts'
import { deferred } from '../../support/http-hosts.ts'

/** After which a look is made once more, in milliseconds. */
const LATE_MS = 2_000

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

  const asked = (looks: ReturnType<typeof gathered>['looks']) =>
    looks.map(({ questions }) => questions.join())

  it('have one look, with a second one under way beside it, and the next after the end of either', async () => {
    const { looks, ask } = gathered()
    const answers = [ask(1), ask(2)]
    await pass(1)
    for (const question of [3, 4, 5]) {
      answers.push(ask(question))
      await pass(1)
    }
    expect(asked(looks)).toEqual(['1,2', '3'])
    looks[1]!.end()
    await pass(1)
    expect(asked(looks)).toEqual(['1,2', '3', '4,5'])
    for (const { end } of looks) end()
    expect(await Promise.all(answers)).toEqual(['1,2', '1,2', '3', '4,5', '4,5'])
  })

  it('are asked once more when a look is late: one that never ends keeps nobody', async () => {
    const { looks, ask } = gathered()
    const answer = ask(1)
    await pass(LATE_MS - 1)
    expect(asked(looks)).toEqual(['1'])
    await pass(2)
    expect(asked(looks)).toEqual(['1', '1'])
    looks[1]!.end()
    expect(await answer).toBe('1')
    await pass(10 * LATE_MS)
    expect(looks).toHaveLength(2)
  })

  it('never have more than two looks under way, each made twice at the most', async () => {
    const { looks, ask } = gathered()
    for (const question of [1, 2, 3]) {
      void ask(question)
      await pass(2 * LATE_MS)
    }
    expect(asked(looks)).toEqual(['1', '1', '2', '2'])
  })

  it('fail with the first failure when no look succeeds', async () => {
    let n = 0
    const failing = new Gathered<number, string>(async () => {
      n += 1
      const failure = new Error(`look ${n}`)
      await new Promise((resolve) => setTimeout(resolve, n === 1 ? LATE_MS + 1 : 1))
      throw failure
    })
    const answer = failing.ask(1)
    const refused = expect(answer).rejects.toThrow('look 1')
    await pass(2 * LATE_MS)
    await refused
  })

  it('have one look after the other, each made once, where looks write', async () => {
    const { looks, ask } = gathered('ordered')
    void ask(1)
    await pass(1)
    void ask(2)
    await pass(10 * LATE_MS)
    expect(asked(looks)).toEqual(['1'])
    looks[0]!.end()
    await pass(1)
    expect(asked(looks)).toEqual(['1', '2'])
  })
})
