import type { IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { readBeginning } from '../../../interfaces/http/body.ts'
import { memberAtBeginning } from '../../../interfaces/http/json/beginning.ts'
import { runs } from '../../support/generated.ts'

const idOf = (text: string) => memberAtBeginning(Buffer.from(text), 'id')

describe('a member at the beginning of a body', () => {
  it.each([
    ['{"id":7,"method":"x"}', 7],
    ['{"jsonrpc":"2.0","params":{"id":1,"a":["}",{"id":2}]},"id" : "x\\"y" }', 'x"y'],
    [' \n{ "a" : [[],{}] , "\\u0069d" : null}', null],
    ['{"id":-1.5e3,"params":{"cut off', -1500],
    ['{"id":[1,2],"a":0}', [1, 2]],
  ])('is read from %s', (text, id) => {
    expect(idOf(text)).toEqual(id)
  })

  it.each([
    '',
    '[{"id":1}]',
    '"id"',
    '{"id"',
    '{"id":',
    '{"id":12',
    '{"id":"12',
    '{"id":{"a":1',
    '{"id" 1}',
    '{id:1}',
    '{"a":1 "id":2}',
    '{"a":{"id":1}}',
    '{"a":"id"}',
    '{"id":nonsense}',
    '{"a":1},"id":2}',
  ])('is not found in %s', (text) => {
    expect(idOf(text)).toBeUndefined()
  })

  it('is read behind a number of any length', () => {
    expect(idOf(`{"params":{"a":[${'1'.repeat(2_000)},{"b":0.${'1'.repeat(2_000)}}]},"id":7}`)).toBe(7)
  })

  it('is looked for with no more than a look at each character where one word is all that came', () => {
    const looks = vi.spyOn(RegExp.prototype, 'exec')
    const replaced = vi.spyOn(String.prototype, 'replace')
    expect(idOf(`{"id":7,"a":${'a'.repeat(64 * 1024)}`)).toBe(7)
    const longLooks = looks.mock.calls.filter(([text]) => text.length > 1).length
    const replacements = replaced.mock.calls.length
    for (const spied of [looks, replaced]) spied.mockRestore()
    expect(longLooks).toBeLessThan(20)
    expect(replacements).toBe(0)
  })

  it('is what JSON.parse reads, in every object', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 })), fc.jsonValue(), (before, id) => {
        const text = JSON.stringify({ ...before, id, after: [id] })
        if (!text.includes('"__proto__"')) expect(idOf(text)).toEqual(JSON.parse(text).id)
      }),
      runs(),
    )
  })

  it('is never anything else than the whole of it, wherever the body is cut', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.string(), fc.nat(), (before, id, cut) => {
        const bytes = Buffer.from(JSON.stringify({ a: before, id }))
        const found = memberAtBeginning(bytes.subarray(0, cut % (bytes.length + 1)), 'id')
        if (found !== undefined) expect(found).toBe(id)
      }),
      runs(),
    )
  })
})

describe('the beginning of a body', () => {
  it('is what has come in time, of a caller that sends no more', async () => {
    const request = new PassThrough()
    request.write('{"id":1')
    expect(String(await readBeginning(request as unknown as IncomingMessage, 1_000, 20))).toBe('{"id":1')
  })

  it('is not waited for once it is there', async () => {
    const request = new PassThrough()
    const beginning = readBeginning(request as unknown as IncomingMessage, 1_000, 2 ** 31 - 1)
    request.end('{"id":1}')
    expect(String(await beginning)).toBe('{"id":1}')
  })
})
