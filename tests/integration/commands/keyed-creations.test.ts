// @module-tag each-log
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import * as tenants from '../../../application/access/tenants.ts'
import type { Application } from '../../../application/commands/application.ts'
import { type IdempotentOutcome, oncePerKey } from '../../../application/commands/keyed-call.ts'
import { requestHash } from '../../../application/commands/request-hash.ts'
import { type Tenant, tenant } from '../../../domain/access/tenant.ts'
import { isRejection, type Rejection } from '../../../domain/kernel/rejection.ts'
import { gate } from '../../support/gate.ts'
import {
  Crashed,
  crashingAt,
  openRegistrationProcesses,
  operatorContext,
  type RegistrationProcess,
  type RegistrationProcesses,
  waitingBefore,
} from '../../support/registrations.ts'

let processes: RegistrationProcesses
let one: RegistrationProcess
let two: RegistrationProcess

beforeAll(async () => {
  processes = await openRegistrationProcesses()
  ;({ one, two } = processes)
})
afterAll(() => processes?.close())

const newKey = () => randomUUID()

/** Registers a tenant under a key. @param refuse what a check says before anything is stored. @param unlessRepeated what is said of a new one. */
async function register(
  app: Application,
  key: string,
  name: string,
  refuse?: Error,
  unlessRepeated?: Error,
): Promise<IdempotentOutcome | Rejection> {
  const context = { ...operatorContext(), unlessRepeated }
  return oncePerKey(
    app,
    { caller: 'operator', operation: 'register', key, sent: { name }, context },
    {
      async run(within) {
        if (refuse) throw refuse
        const created = await tenants.register(app, { name }, within)
        if (isRejection(created)) throw new Error(created.message)
        return { status: 201, body: created }
      },
      creates: { decider: tenant, answerOf: ({ state }) => ({ status: 201, body: state }) },
    },
  )
}

function succeeded(outcome: IdempotentOutcome | Rejection): IdempotentOutcome & { body: Tenant } {
  if (isRejection(outcome)) throw new Error(outcome.message)
  return outcome as IdempotentOutcome & { body: Tenant }
}

async function streams(): Promise<number> {
  return (await one.app.log.readAll({ after: 0n, maxCount: 10_000 })).events.length
}

describe('a creation with a key', () => {
  test('is one append, and the same request again gets the first answer', async () => {
    const key = newKey()
    const before = await streams()
    const first = succeeded(await register(one.app, key, 'A'))
    expect(first).toMatchObject({ replayed: false, status: 201, body: { name: 'A' } })
    for (const { app } of [one, two]) {
      expect(await register(app, key, 'A')).toEqual({ replayed: true, status: 200, body: first.body })
    }
    expect(await streams()).toBe(before + 1)
  })

  test('is answered although what it needed has changed since, and refuses another body all the same', async () => {
    const key = newKey()
    const refusal = new Error('gone meanwhile')
    const first = succeeded(await register(one.app, key, 'A'))
    const again = succeeded(await register(two.app, key, 'A', refusal))
    expect(again).toEqual({ replayed: true, status: 200, body: first.body })
    expect(await register(two.app, key, 'B', refusal)).toMatchObject({ code: 'idempotency_key_reused' })
  })

  test('is answered where it would not be accepted any more, and a new one is refused', async () => {
    const key = newKey()
    const unknown = new Error('an unknown field')
    const before = await streams()
    await expect(register(one.app, key, 'A', undefined, unknown)).rejects.toThrow(unknown)
    expect(await streams()).toBe(before)
    const first = succeeded(await register(one.app, key, 'A'))
    const again = await register(two.app, key, 'A', undefined, unknown)
    expect(again).toEqual({ replayed: true, status: 200, body: first.body })
  })

  test('whose process died is done, or free, as the log says', async () => {
    for (const at of ['before', 'after'] as const) {
      const key = newKey()
      const dying = crashingAt(one.app, { category: 'tenant', at })
      // what was stored before the process died is found by the very attempt that a test lets live on
      const attempt = register(dying, key, 'A')
      if (at === 'before') await expect(attempt).rejects.toThrow(Crashed)
      else await attempt
      const retried = succeeded(await register(two.app, key, 'A'))
      expect(retried.replayed).toBe(at === 'after')
      expect(await register(one.app, key, 'A')).toMatchObject({ replayed: true, body: retried.body })
    }
  })

  test('that goes on late finds the other, and adds nothing', async () => {
    for (const name of ['A', 'B']) {
      const key = newKey()
      const late = waitingBefore(one.app, 'tenant')
      const slow = register(late.app, key, name)
      await late.arrived
      const first = succeeded(await register(two.app, key, 'A'))
      const before = await streams()
      late.goOn()
      if (name === 'A') expect(await slow).toEqual({ replayed: true, status: 200, body: first.body })
      else expect(await slow).toMatchObject({ code: 'idempotency_key_reused' })
      expect(await streams()).toBe(before)
    }
  })

  test('sent 50 times at once, half of them with another body, is one', async () => {
    const key = newKey()
    const before = await streams()
    const outcomes = await Promise.all(
      Array.from({ length: 50 }, async (_, index) => {
        const name = index % 2 === 0 ? 'even' : 'odd'
        return { name, outcome: await register((index % 4 < 2 ? one : two).app, key, name) }
      }),
    )
    const done = outcomes.filter(({ outcome }) => !isRejection(outcome))
    const fresh = done.filter(({ outcome }) => !succeeded(outcome).replayed)
    expect(fresh).toHaveLength(1)
    expect(done).toHaveLength(25)
    for (const { name, outcome } of done) {
      expect(name).toBe(fresh[0]!.name)
      expect(succeeded(outcome).body).toEqual(succeeded(fresh[0]!.outcome).body)
    }
    for (const { outcome } of outcomes) {
      if (isRejection(outcome)) expect(outcome.code).toBe('idempotency_key_reused')
    }
    expect(await streams()).toBe(before + 1)
  })

  test('sent many times at once is worked on once by each process; the others wait for what becomes of it', async () => {
    const call = { caller: 'operator', operation: 'register', sent: 'many', context: operatorContext() }
    for (const fails of [false, true]) {
      const key = newKey()
      let runs = 0
      const { opened: held, open: goOn } = gate()
      const send = () =>
        oncePerKey(
          one.app,
          { ...call, key },
          {
            async run(within) {
              runs += 1
              await held
              if (fails) throw new Error('refused')
              const created = await tenants.register(one.app, { name: 'Many' }, within)
              return { status: 201, body: created }
            },
            creates: { decider: tenant, answerOf: ({ state }) => ({ status: 201, body: state }) },
          },
        ).catch((error: Error) => error.message)
      const sent = Array.from({ length: 50 }, send)
      await vi.waitFor(() => expect(runs).toBe(1), 240_000)
      const other = oncePerKey(
        one.app,
        { ...call, key, sent: 'other' },
        {
          run: () => Promise.reject(new Error('its turn')),
          creates: { decider: tenant, answerOf: () => null },
        },
      ).catch((error: Error) => ({ code: error.message }))
      goOn()
      expect(await other).toMatchObject({ code: fails ? 'its turn' : 'idempotency_key_reused' })
      const outcomes = await Promise.all(sent)
      expect(runs).toBe(1)
      if (fails) expect(new Set(outcomes)).toEqual(new Set(['refused']))
      else {
        expect(outcomes.filter((outcome) => (outcome as IdempotentOutcome).replayed)).toHaveLength(49)
        expect(
          new Set(outcomes.map((outcome) => JSON.stringify((outcome as IdempotentOutcome).body))).size,
        ).toBe(1)
      }
    }
  })

  test('keeps a fingerprint of its body, not the body’s hash', async () => {
    const append = vi.spyOn(one.app.log, 'append')
    await register(one.app, newKey(), 'Hashed')
    const { metadata } = append.mock.calls[0]![2][0]!
    append.mockRestore()
    expect(JSON.parse(metadata)).toMatchObject({
      command_id: expect.stringMatching(/^[0-9a-f]{24}$/),
      keyed_request: { body_fingerprint: expect.stringMatching(/^[0-9a-f]{24}$/) },
    })
    expect(metadata).not.toContain((await requestHash({ name: 'Hashed' })).slice(0, 24))
  })
})
