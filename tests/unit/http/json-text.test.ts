import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { type Access, Answer, endpointsOf } from '../../../interfaces/endpoints/endpoint.ts'
import { openApiOf } from '../../../interfaces/endpoints/openapi.ts'
import { routesOf } from '../../../interfaces/endpoints/request-pipeline.ts'
import { CallSlots } from '../../../interfaces/http/call-slots.ts'
import { writeEnvelopeError } from '../../../interfaces/http/errors.ts'
import { JsonText, jsonPieces, objectText } from '../../../interfaces/http/json-writer.ts'
import { RateLimiter } from '../../../interfaces/http/rate-limit.ts'
import type { Listener } from '../../../interfaces/http/server.ts'
import { paymentsApi } from '../../../interfaces/payments-api/host/api.ts'
import { runs } from '../../support/generated.ts'
import { listenWith } from '../../support/http-hosts.ts'

// spaces, and a number that would not come back: whatever is parsed on its way looks different
const ODD = '{ "name":"Zoë — “ok” 😀", "amount" : 1.0 }'
const LARGE = `{ "text" : "${'ä'.repeat(700 * 1024)}" }`
const PER_SECOND = 100

const Item = z.object({ _id: z.string(), payload: objectText.describe('What was sent'), last: z.null() })

const access: Access<null, void> = {
  security: [],
  errors: {},
  async identify(_, { costs }) {
    await costs.admit('caller')
  },
}
const endpoint = endpointsOf<null, void>(
  paymentsApi,
  access,
)({
  operation: 'listThings',
  route: 'GET /things',
  summary: 'List things',
  answers: { 200: z.array(Item).readonly() },
  async handle() {
    const texts = [ODD, LARGE]
    const textBytes = texts.reduce((bytes, text) => bytes + Buffer.byteLength(text), 0)
    const items = texts.map((text, n) => ({ _id: String(n), payload: new JsonText(text), last: null }))
    return new Answer(200, items, { textBytes })
  },
})

let listener: Listener
let credentials: RateLimiter
beforeEach(async () => {
  credentials = new RateLimiter(PER_SECOND, () => 0)
  const limits = { credentials, addresses: new RateLimiter(0), largeCalls: new CallSlots(4, 20, 'too many') }
  listener = await listenWith({
    routes: routesOf([endpoint], () => null, limits),
    addresses: limits.addresses,
    writeError: writeEnvelopeError,
    onFailure: (error) => {
      throw error
    },
  })
})
afterEach(() => listener.close())

describe('texts in an answer', () => {
  test('leave as they are, and are paid for by their bytes', async () => {
    const response = await fetch(`${listener.url}/api/v1/things`)
    const text = await response.text()
    expect(text).toBe(
      `{"ok":true,"data":[{"_id":"0","payload":${ODD},"last":null},{"_id":"1","payload":${LARGE},"last":null}]}`,
    )
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
    // 1.4 MB are 22 tokens of 64 KiB
    let left = 0
    while (credentials.take('caller') === 0) left += 1
    expect(left).toBe(2 * PER_SECOND - Math.ceil(Buffer.byteLength(ODD + LARGE) / (64 * 1024)))
  })

  test('are described as the objects that they are', () => {
    const { schemas } = openApiOf([endpoint], '1').components
    const [, body] = Object.entries(schemas!).find(([name]) => name.endsWith('Response'))!
    expect(body).toMatchObject({
      properties: {
        data: { items: { properties: { payload: { type: 'object', description: 'What was sent' } } } },
      },
    })
  })

  test('stand among others that become what JSON.stringify makes of them', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.boolean(), (value, isOptional) => {
        const whole = { value, none: isOptional ? undefined : null, list: [value, value] }
        expect([...jsonPieces(whole)].join('')).toBe(JSON.stringify(whole))
      }),
      runs(),
    )
  })
})
