import type { IncomingMessage, ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import type { Application } from '../../../application/commands/application.ts'
import { loadConfig } from '../../../infrastructure/config/config.ts'
import { RateLimiter } from '../../../interfaces/http/rate-limit.ts'
import { ProbeAccess } from '../../../interfaces/operator-api/operations/probe-access.ts'

function statusesOf(
  access: ProbeAccess,
  remoteAddress: string | undefined,
  times = 1,
  headers: IncomingMessage['headers'] = {},
): Promise<number[]> {
  const request = { socket: { remoteAddress }, headers } as IncomingMessage
  const statuses = Array.from({ length: times }, () =>
    access.require(request, {} as ServerResponse).then(
      () => 200,
      (error: { status: number }) => error.status,
    ),
  )
  return Promise.all(statuses)
}

function accessOf(env: Record<string, string>, isOperator = false, reported: string[] = []): ProbeAccess {
  const gate = {
    knows: () => isOperator,
    isOperator: () => Promise.resolve(isOperator),
    report: (_request: IncomingMessage, _response: ServerResponse, why: string) => void reported.push(why),
  }
  return new ProbeAccess(loadConfig(env).probeRanges, {} as Application, gate, new RateLimiter(1, () => 0))
}

describe('probes', () => {
  it.each([
    ...['127.0.0.1', '127.3.2.1', '::1', '10.1.2.3', '172.16.0.1', '172.31.255.255', '192.168.1.1'],
    ...['::ffff:10.1.2.3', '::ffff:127.0.0.1', 'fd00::7', 'fe80::1', 'fe80::1%eth0', '169.254.1.1'],
  ])('are there for the local address %s, as often as it asks', async (address) => {
    expect(await statusesOf(accessOf({}), address, 5)).toEqual(Array(5).fill(200))
  })

  it.each(['8.8.8.8', '172.32.0.1', '11.0.0.1', '::ffff:8.8.8.8', '2001:db8::1', undefined])(
    'are not there for the address %s, which is limited',
    async (address) => {
      expect(await statusesOf(accessOf({}), address, 4)).toEqual([403, 403, 429, 429])
    },
  )

  it('are there for the operator from anywhere', async () => {
    expect(await statusesOf(accessOf({}, true), '8.8.8.8', 4)).toEqual(Array(4).fill(200))
  })

  it('tell of tokens that are wrong', async () => {
    const reported: string[] = []
    const access = accessOf({}, false, reported)
    expect(await statusesOf(access, '8.8.8.8')).toEqual([403])
    expect(reported).toEqual([])
    expect(await statusesOf(access, '8.8.8.8', 1, { authorization: 'Bearer guess' })).toEqual([403])
    expect(reported).toEqual(['wrong token'])
  })

  it('are there for the addresses that are set, and no others', async () => {
    const access = accessOf({ PROBE_ALLOW_CIDRS: '198.51.100.0/24, 2001:db8::/32' })
    const seen = ['198.51.100.9', '2001:db8:7::1', '::ffff:198.51.100.9', '127.0.0.1', '198.51.101.1']
    const statuses = await Promise.all(seen.map((address) => statusesOf(access, address)))
    expect(statuses.flat()).toEqual([200, 200, 200, 403, 403])
  })
})
