import { afterEach, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { shown } from '../../../interfaces/endpoints/shown.ts'

afterEach(() => vi.restoreAllMocks())

const declares = (schema: z.ZodType) => ({ operation: 'listThings', answers: { 200: schema } })
const Thing = z.object({ n: z.int() })

it.each([
  ['a list', z.array(Thing)],
  ['a list that is read only', z.array(Thing).readonly()],
])('of %s, only what its schema names goes out', async (_, schema) => {
  const answered = await shown(declares(schema), 200, [{ n: 1, secret: 'x' }, { n: 2 }])
  expect(answered).toEqual([{ n: 1 }, { n: 2 }])
})

it('a list with an element that is not as declared does not go out, and the element is named', async () => {
  await expect(shown(declares(z.array(Thing)), 200, [{ n: 1 }, { n: 'two' }])).rejects.toThrow(
    'The answer of listThings is not as declared: [1].n must be a number',
  )
})

it('a list whose schema says something of the whole is held to that', async () => {
  await expect(shown(declares(z.array(Thing).max(1)), 200, [{ n: 1 }, { n: 2 }])).rejects.toThrow(
    'must not have more than 1 elements',
  )
})

it('the elements of a list that take long are checked in turns of the event loop of their own', async () => {
  let now = 0
  vi.spyOn(performance, 'now').mockImplementation(() => now)
  let turn = 0
  let isOver = false
  const count = () => {
    turn += 1
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  const turns: number[] = []
  const Slow = Thing.refine(() => {
    now += 20
    turns.push(turn)
    return true
  })
  await shown(declares(z.array(Slow).readonly()), 200, Array(50).fill({ n: 1 }))
  isOver = true
  expect(turns).toHaveLength(50)
  expect(new Set(turns).size).toBe(50)
})
