import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { rowsAsJson } from '../../../infrastructure/read-models/rows-as-json.ts'

describe('rows as JSON', () => {
  it.each([0, 1, 50, 51, 1234])('are what JSON.stringify gives, %i of them', async (count) => {
    const rows = Array.from({ length: count }, (_, index) => ({ n: index, text: 'é"\\,]', none: null }))
    expect((await rowsAsJson(rows)).toString()).toBe(JSON.stringify(rows))
  })

  it('hold no U+0000 and no half surrogate pairs', async () => {
    const texts = { a: 'x\ud800y', b: '\\ud800', c: '😀', d: '\0\0', e: '\\u0000' }
    const [row] = JSON.parse((await rowsAsJson([texts])).toString())
    expect(row).toEqual({ a: 'x\ufffdy', b: '\\ud800', c: '😀', d: '\ufffd\ufffd', e: '\\u0000' })
  })

  it('leave others their turns', async () => {
    const rows = Array.from({ length: 50_000 }, () => ({ text: 'x'.repeat(500) }))
    let isDone = false
    const done = rowsAsJson(rows).finally(() => {
      isDone = true
    })
    let turns = 0
    while (!isDone) {
      await turn()
      turns += 1
    }
    await done
    expect(turns).toBeGreaterThan(3)
  })
})
