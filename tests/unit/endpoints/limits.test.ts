import { expect, test } from 'vitest'
import type { z } from 'zod'
import { APIS } from '../../../interfaces/descriptions.ts'

/** The parameter `limit` of every operation that has one. */
const limits = Object.entries(APIS).flatMap(([api, endpoints]) =>
  endpoints.flatMap(({ operation, query }) => {
    const limit = query?.shape.limit as z.ZodType<number> | undefined
    return limit ? [[`${api} ${operation}`, limit] as const] : []
  }),
)

test.each(limits)('%s shows as many as it can, however many more are asked for', (_name, limit) => {
  const most = limit.parse('100000')
  expect(limit.parse(String(most))).toBe(most)
  expect(limit.parse(String(most - 1))).toBe(most - 1)
  for (const more of [String(most + 1), `${10n ** 15n}`, `${10n ** 400n}`])
    expect(limit.parse(more)).toBe(most)
  for (const none of ['0', '-1', '1.5', 'all', '']) expect(limit.safeParse(none).success).toBe(false)
})
