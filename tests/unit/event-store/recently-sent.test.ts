import { expect, test } from 'vitest'
import { RecentlySent } from '../../../infrastructure/event-store/recently-sent.ts'

test('what was sent is handed out once; of what nobody takes the oldest goes', () => {
  const sent = new RecentlySent()
  const data = JSON.stringify('x'.repeat(100_000))
  const metadata = '{"hash":"h"}'
  const writtenFrom = { by: sent, text: data, data: {}, metadata: {} }
  for (let n = 0; n < 200; n += 1) sent.add(String(n), { data, metadata, writtenFrom })
  expect(sent.take('199')).toEqual({ data, metadata, writtenFrom })
  expect(sent.take('199')).toBeUndefined()
  const kept = Array.from({ length: 199 }, (_, n) => sent.take(String(n))).filter(Boolean).length
  expect(kept).toBeGreaterThan(10)
  expect(kept * data.length).toBeLessThanOrEqual(8 * 1024 * 1024)
  expect(sent.take('0')).toBeUndefined()
})
