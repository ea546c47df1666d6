import { request as httpRequest, type Server } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { HttpError } from '../../../interfaces/http/errors.ts'
import { linesOf, MAX_LINE_BYTES } from '../../../interfaces/http/lines.ts'
import { plainServer } from '../../support/http-hosts.ts'

/** Bodies that are taken line by line, over HTTP. */
let server: Server
let url: string

beforeAll(async () => {
  ;({ server, url } = await plainServer(async (request, response) => {
    const lines: unknown[] = []
    try {
      for await (const batch of linesOf(request, 2)) {
        lines.push(batch.map(({ line, bytes }) => [line, bytes?.toString() ?? null]))
        // whoever stops half way can still answer
        if (request.url === '/two') break
      }
      response.end(JSON.stringify(lines))
    } catch (error) {
      response.statusCode = (error as HttpError).status
      response.end('{}')
    }
  }))
})
afterAll(() => server?.close())

/** Sends a body in parts, each of which arrives before the next one. */
function send(
  parts: readonly string[],
  path = '/',
  headers = {},
): Promise<{ status: number; lines: unknown }> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(`${url}${path}`, { method: 'POST', headers }, async (response) => {
      let text = ''
      for await (const part of response) text += part
      resolve({ status: response.statusCode!, lines: JSON.parse(text) })
    })
    request.on('error', reject)
    const write = (index: number): void => {
      if (index === parts.length) request.end()
      else request.write(parts[index], () => setImmediate(write, index + 1))
    }
    write(0)
  })
}

test.for([
  ['nothing', [], []],
  ['one without an end', ['a'], [[[1, 'a']]]],
  [
    'several, and blank ones that count',
    ['a\n\n \r\nb\nc\n'],
    [
      [
        [1, 'a'],
        [4, 'b'],
      ],
      [[5, 'c']],
    ],
  ],
  [
    'cut anywhere',
    ['a', 'b\nc', '\n', 'd'],
    [
      [
        [1, 'ab'],
        [2, 'c'],
      ],
      [[3, 'd']],
    ],
  ],
  [
    'with a byte order mark',
    ['\ufeffa\nb'],
    [
      [
        [1, 'a'],
        [2, 'b'],
      ],
    ],
  ],
  [
    'with ends of another system',
    ['a\r\nb\r\n'],
    [
      [
        [1, 'a\r'],
        [2, 'b\r'],
      ],
    ],
  ],
  [
    'too long to be read',
    ['x'.repeat(MAX_LINE_BYTES), 'x\n', 'y'.repeat(MAX_LINE_BYTES), '\nz'],
    [
      [
        [1, null],
        [2, 'y'.repeat(MAX_LINE_BYTES)],
      ],
      [[3, 'z']],
    ],
  ],
] as const)('%s', async ([, parts, lines]) => {
  expect(await send(parts)).toEqual({ status: 200, lines })
})

test('no more is taken than is asked for, and there is an answer all the same', async () => {
  const parts = Array.from({ length: 100 }, () => `${'x'.repeat(10_000)}\n`)
  const { lines } = await send(parts, '/two')
  expect(lines).toHaveLength(1)
})

test.for([{ 'Content-Encoding': 'gzip' }, { 'Content-Type': 'application/x-ndjson; charset=utf-16' }])(
  'is refused with %j',
  async (headers) => {
    expect((await send(['a'], '/', headers)).status).toBe(415)
  },
)
