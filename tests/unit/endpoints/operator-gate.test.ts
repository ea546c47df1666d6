import type { IncomingMessage, ServerResponse } from 'node:http'
import { beforeEach, describe, expect, it } from 'vitest'
import { apiKeyHash } from '../../../application/access/agent-scope.ts'
import type { Application } from '../../../application/commands/application.ts'
import { ServiceUnavailable } from '../../../application/ports/unavailable.ts'
import { type Operators, type OperatorsEvent, operators } from '../../../domain/access/operators.ts'
import { fold } from '../../../domain/kernel/decider.ts'
import { reservation } from '../../../domain/kernel/reservation.ts'
import { OperatorGate, type RefusedOperator } from '../../../interfaces/http/bearer.ts'
import { RateLimiter } from '../../../interfaces/http/rate-limit.ts'

const ACTIVE = `mcp_${'a'.repeat(64)}`
const REVOKED = `mcp_${'b'.repeat(64)}`
const UNKNOWN = `mcp_${'c'.repeat(64)}`
const token = (digit: string) => `op_${digit.repeat(64)}`
const NOW = Date.parse('2026-11-29T12:00:00.000Z')

/** Ids of the credentials that were loaded. */
let loaded: string[]
let told: RefusedOperator[]
let app: Pick<Application, 'commands' | 'clock'>
/** Two requests per address, then none: the time stands still. */
let gate: OperatorGate
let all: Operators
/** Looks at the register of operators. */
let looks: number
let isLogAway: boolean

function created(digit: string, role: string, expires_at: string | null = null): OperatorsEvent {
  const operator_id = digit.repeat(24)
  const data = { operator_id, role, expires_at, token_hash: apiKeyHash(token(digit)) }
  return { type: 'OperatorCreated', data } as OperatorsEvent
}

function happened(...events: readonly object[]): void {
  all = fold(operators, events as readonly OperatorsEvent[], all)
}

beforeEach(() => {
  loaded = []
  told = []
  looks = 0
  isLogAway = false
  all = operators.initialState
  const statuses = new Map([
    ['active', { status: 'active', key_hash: apiKeyHash(ACTIVE) }],
    ['revoked', { status: 'revoked', key_hash: apiKeyHash(REVOKED) }],
  ])
  const commands = {
    load(decider: unknown, id: string) {
      if (isLogAway) return Promise.reject(new ServiceUnavailable('away'))
      if (decider === operators) {
        looks += 1
        return Promise.resolve({ state: all, revision: 0 })
      }
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
  app = { commands, clock: { now: () => NOW } } as typeof app
  gate = new OperatorGate({
    firstToken: 'operator-token',
    addresses: new RateLimiter(1, () => 0),
    onRefused: (refused) => told.push(refused),
  })
})

function requestWith(authorization: string | undefined): IncomingMessage {
  return {
    headers: authorization === undefined ? {} : { authorization },
    socket: { remoteAddress: '192.0.2.1' },
  } as IncomingMessage
}

const response = { getHeader: () => 'request-7' } as unknown as ServerResponse

function statusOf(authorization: string | undefined): Promise<number> {
  return gate.require(app, requestWith(authorization), response, ['admin', 'auditor']).then(
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

  it('looks no token up that cannot be one', async () => {
    for (const other of ['nonsense', ACTIVE, 'op_short']) await statusOf(`Bearer ${other}`)
    expect(looks).toBe(0)
  })

  it("lets an operator in by the token, for as long as it lasts, where the endpoint is for the operator's role", async () => {
    happened(
      created('1', 'auditor', '2026-11-29T12:00:00.001Z'),
      created('2', 'auditor', '2026-11-29T12:00:00.000Z'),
      created('3', 'support'),
      created('4', 'admin'),
      { type: 'OperatorRevoked', data: { operator_id: '4'.repeat(24), reason: null } },
    )
    gate = new OperatorGate({
      firstToken: 'operator-token',
      addresses: new RateLimiter(0),
      onRefused: (refused) => told.push(refused),
    })
    const statuses = []
    for (const digit of '12345') statuses.push(await statusOf(`Bearer ${token(digit)}`))
    expect(statuses).toEqual([200, 401, 403, 401, 401])
    expect(told.map(({ why, operatorId }) => [why, operatorId])).toEqual([
      ['expired token', undefined],
      ['role', '3'.repeat(24)],
      ['token of a revoked operator', undefined],
      ['wrong token', undefined],
    ])
  })

  it('counts no operator that it knows against the address', async () => {
    happened(created('1', 'admin'))
    const statuses = []
    for (let request = 0; request < 5; request += 1) statuses.push(await statusOf(`Bearer ${token('1')}`))
    expect(statuses).toEqual([200, 200, 200, 200, 200])
  })

  it.each([
    ['rotated', { type: 'OperatorTokenRotated', data: { operator_id: 'operator', expires_at: null } }],
    ['revoked', { type: 'OperatorRevoked', data: { operator_id: 'operator', reason: null } }],
  ])(
    'takes the token of the setting no more once the first admin was %s, whatever it says',
    async (_how, event) => {
      const token_hash = apiKeyHash(token('1'))
      happened({ ...event, data: { ...event.data, ...(event.type.endsWith('Rotated') && { token_hash }) } })
      expect(await statusOf('Bearer operator-token')).toBe(401)
    },
  )

  it("lets a named operator's token in as that operator, also where the setting says the same", async () => {
    happened(created('3', 'support'))
    gate = new OperatorGate({
      firstToken: token('3'),
      addresses: new RateLimiter(1, () => 0),
      onRefused: (refused) => told.push(refused),
    })
    expect(await statusOf(`Bearer ${token('3')}`)).toBe(403)
  })

  it('goes by what it knew for probes while the log is away, and for nothing else', async () => {
    happened(created('1', 'support'))
    const request = requestWith(`Bearer ${token('1')}`)
    expect(await gate.isOperator(app, request)).toBe(true)
    isLogAway = true
    expect(await gate.isOperator(app, request)).toBe(true)
    expect(await gate.isOperator(app, requestWith('Bearer operator-token'))).toBe(true)
    expect(await gate.isOperator(app, requestWith(`Bearer ${token('2')}`))).toBe(false)
    const refused = gate.require(app, request, response, ['support'])
    await expect(refused).rejects.toThrow(ServiceUnavailable)
  })
})
