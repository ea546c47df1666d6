import type { IncomingMessage, ServerResponse } from 'node:http'
import { beforeEach, describe, expect, it } from 'vitest'
import { apiKeyHash, isActiveApiKey } from '../../../application/access/agent-scope.ts'
import type { Application } from '../../../application/commands/application.ts'
import { reservation } from '../../../domain/kernel/reservation.ts'
import { OperatorGate, type RefusedOperator } from '../../../interfaces/http/bearer.ts'
import { RateLimiter } from '../../../interfaces/http/rate-limit.ts'

const ACTIVE = `mcp_${'a'.repeat(64)}`
const REVOKED = `mcp_${'b'.repeat(64)}`
const UNKNOWN = `mcp_${'c'.repeat(64)}`

/** Ids of the credentials that were loaded. */
let loaded: string[]
let told: RefusedOperator[]
/** Two requests per address, then none: the time stands still. */
let gate: OperatorGate

beforeEach(() => {
  loaded = []
  told = []
  const statuses = new Map([
    ['active', { status: 'active', key_hash: apiKeyHash(ACTIVE) }],
    ['revoked', { status: 'revoked', key_hash: apiKeyHash(REVOKED) }],
  ])
  const commands = {
    reading: (run: (reader: unknown) => unknown) => run(commands),
    load(decider: unknown, id: string) {
      if (decider === reservation) {
        const owner_id = [ACTIVE, REVOKED].find((key) => id.endsWith(apiKeyHash(key).slice(0, 24)))
        return Promise.resolve({
          state: { owner_id: owner_id === undefined ? null : owner_id === ACTIVE ? 'active' : 'revoked' },
          revision: 0,
        })
      }
      loaded.push(id)
      return Promise.resolve({ state: statuses.get(id) ?? null, revision: 0 })
    },
  } as unknown as Application['commands']
  const addresses = new RateLimiter(1, () => 0)
  gate = new OperatorGate('operator-token', addresses, {
    isAgentKey: (key) => isActiveApiKey({ commands }, key),
    onRefused: (refused) => told.push(refused),
  })
})

function statusOf(authorization: string | undefined): Promise<number> {
  const request = {
    headers: authorization === undefined ? {} : { authorization },
    socket: { remoteAddress: '192.0.2.1' },
  } as IncomingMessage
  const response = { getHeader: () => 'request-7' } as unknown as ServerResponse
  return gate.require(request, response).then(
    () => 200,
    (error: { status: number }) => error.status,
  )
}

describe('the operator gate', () => {
  it.each([
    ['an active agent key', `Bearer ${ACTIVE}`, 403, 1],
    ['a revoked agent key', `Bearer ${REVOKED}`, 401, 1],
    ['a key that was never issued', `Bearer ${UNKNOWN}`, 401, 1],
    ['a malformed key', 'Bearer mcp_abc', 401, 0],
    ['some other token', 'Bearer nonsense', 401, 0],
    ['another scheme', `Basic ${ACTIVE}`, 401, 0],
    ['no token', undefined, 401, 0],
    ['the operator token', 'Bearer operator-token', 200, 0],
  ])('answers %s with %s %i after %i look-ups', async (_name, authorization, status, lookUps) => {
    expect(await statusOf(authorization)).toBe(status)
    expect(loaded).toHaveLength(lookUps)
  })

  it.each([
    ["a token that is not the operator's", 'Bearer nonsense', 'wrong token'],
    ['an agent key', `Bearer ${ACTIVE}`, 'agent key'],
    ['no token', undefined, 'no token'],
  ])(
    'tells of a caller with %s, never what was sent, and not of those over the limit',
    async (_name, sent, why) => {
      for (let request = 0; request < 5; request += 1) await statusOf(sent)
      const refused = { requestId: 'request-7', address: '192.0.2.1', why }
      expect(told).toEqual([refused, refused])
    },
  )

  it('has nothing to tell of the operator', async () => {
    await statusOf('Bearer operator-token')
    expect(told).toEqual([])
  })

  it('looks nothing up for an address that is over its limit', async () => {
    const statuses = []
    for (let request = 0; request < 5; request += 1) statuses.push(await statusOf(`Bearer ${UNKNOWN}`))
    expect(statuses).toEqual([401, 401, 429, 429, 429])
    expect(loaded).toHaveLength(2)
  })
})
