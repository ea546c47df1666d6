import { describe, expect, test } from 'vitest'
import { type Caused, causation } from '../../../interfaces/operator-api/console/causation.ts'

const event = (id: number, cause: string | null, sentence = `Event ${id}.`, request = 'r1'): Caused => ({
  event_id: `e${id}`,
  sentence,
  caused_by: cause,
  metadata: { correlation_id: request },
})
const STORY = '/console/stories/payroll_company/19a3638163bd4dd3af8ef037'
const drawn = (events: readonly Caused[], { before = 0, step = events.length } = {}) =>
  causation({ events, before, step, asOf: (number) => `${STORY}?position=${number}&from=1` }).text
/** The texts of the picture from above to below, each with the depth at which it stands. */
const rowsIn = (text: string) =>
  [...text.matchAll(/<text x="(\d+)[^>]*>([^<]*)</g)].map(([, x, label]) => [(Number(x) - 18) / 18, label])

describe('the picture of what caused what', () => {
  test('has each event below what caused it, and at the left what is no event among them', () => {
    const text = drawn([event(1, null), event(2, 'e1'), event(3, 'away'), event(4, 'e2'), event(5, 'e1')])
    expect(rowsIn(text)).toEqual([
      [0, 'request or timer r1'],
      [1, '1 Event 1.'],
      [2, '2 Event 2.'],
      [3, '4 Event 4.'],
      [2, '5 Event 5.'],
      [0, 'event elsewhere away'],
      [1, '3 Event 3.'],
    ])
    expect(text).toContain('5 events: 3 were caused by another one of them, the rest by 2 requests')
    expect(text).toContain('<a href="/console/events?correlation_id=r1">r1</a>')
  })

  test('loses no event that names itself or a later one as its cause', () => {
    expect(rowsIn(drawn([event(1, 'e1'), event(2, 'e3'), event(3, 'e2')]))).toEqual([
      [0, 'event elsewhere e1'],
      [1, '1 Event 1.'],
      [0, 'event elsewhere e3'],
      [1, '2 Event 2.'],
      [2, '3 Event 3.'],
    ])
  })

  test('shows events that are later than what is looked at as such, by their numbers in the story', () => {
    const text = drawn([event(1, null), event(2, null), event(3, null)], { before: 50, step: 51 })
    expect(rowsIn(text).map(([, label]) => label)).toContain('53 Event 3.')
    expect([text.match(/<circle /g)?.length, text.match(/<circle class="later"/g)?.length]).toEqual([3, 2])
  })

  test.each([
    ['a chain', (n: number) => event(n, `e${n - 1}`, '"&'.repeat(200), `request ${n}`)],
    ['as many requests', (n: number) => event(n, null, '漢字'.repeat(200), `request ${n}`.padEnd(36, '0'))],
    [
      'as many requests whose callers named them long',
      (n: number) => event(n, null, 'Paid.', `${n}`.padEnd(128, '"')),
    ],
  ])('of 50 events, %s, stays small and not wide', (_, each) => {
    const text = drawn(Array.from({ length: 50 }, (_, n) => each(n)))
    expect(Buffer.byteLength(text)).toBeLessThan(30 * 1024)
    expect(Number(/<svg [^>]*width="(\d+)"/.exec(text)![1])).toBeLessThan(600)
    expect(text.match(/<circle /g)).toHaveLength(50)
  })
})
