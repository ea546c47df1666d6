import { once } from 'node:events'
import { request } from 'node:http'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { type Access, endpointsOf } from '../../../interfaces/endpoints/endpoint.ts'
import { routesOf } from '../../../interfaces/endpoints/request-pipeline.ts'
import { CallerGone } from '../../../interfaces/http/body.ts'
import { CallSlots } from '../../../interfaces/http/call-slots.ts'
import { RateLimiter } from '../../../interfaces/http/rate-limit.ts'
import type { Listener } from '../../../interfaces/http/server.ts'
import { paymentsApi } from '../../../interfaces/payments-api/host/api.ts'
import { listenWith } from '../../support/http-hosts.ts'

/** What the endpoint does with the signal of its request. */
let handle: (call: { readonly signal: AbortSignal }) => Promise<void>
/** When the connection of the request is closed. */
let closed: Promise<unknown>
const access: Access<null, void> = {
  security: [],
  errors: {},
  async identify(_, { request: { socket } }) {
    closed = once(socket, 'close')
  },
}
const endpoint = endpointsOf<null, void>(
  paymentsApi,
  access,
)({
  operation: 'wait',
  route: 'GET /wait',
  summary: 'Wait',
  answers: { 200: z.object({}) },
  async handle(call) {
    await handle(call)
    return {}
  },
})

let listener: Listener
beforeEach(async () => {
  const limits = {
    credentials: new RateLimiter(0),
    addresses: new RateLimiter(0),
    largeCalls: new CallSlots(4, 20, 'too many'),
  }
  listener = await listenWith({ routes: routesOf([endpoint], () => null, limits) })
})
afterEach(() => listener.close())

/** Sends a request. @returns what ends it. */
function send() {
  const sent = request(`${listener.url}/api/v1/wait`)
  sent.on('error', () => undefined)
  sent.end()
  return sent
}

test('an endpoint is told when its caller goes away before the answer', async () => {
  const reason = await new Promise((resolve) => {
    handle = async ({ signal }) => {
      const aborted = once(signal, 'abort')
      sent.destroy()
      await aborted
      resolve(signal.reason)
    }
    const sent = send()
  })
  expect(reason).toBeInstanceOf(CallerGone)
})

test('an endpoint that asks after its caller went away is told at once', async () => {
  const isAborted = await new Promise((resolve) => {
    handle = async (call) => {
      sent.destroy()
      await closed
      resolve(call.signal.aborted)
    }
    const sent = send()
  })
  expect(isAborted).toBe(true)
})

test('an endpoint that has answered is told nothing', async () => {
  const signals: AbortSignal[] = []
  handle = async ({ signal }) => {
    signals.push(signal)
  }
  const response = (await once(send(), 'response'))[0]
  response.resume()
  await once(response, 'close')
  await listener.close({ idleMs: 0 })
  await closed
  expect(signals.map(({ aborted }) => aborted)).toEqual([false])
})
