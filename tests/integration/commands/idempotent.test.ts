// @module-tag each-log
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { claimKey, existingDebit, namedDebit } from '../../../application/banking/debits/debit-keys.ts'
import type { Application } from '../../../application/commands/application.ts'
import type { CommandContext } from '../../../application/commands/command-context.ts'
import {
  type IdempotentAnswer,
  type IdempotentOutcome,
  type KeyedCall,
  type KeyedWork,
  oncePerKey,
} from '../../../application/commands/keyed-call.ts'
import { requestHash } from '../../../application/commands/request-hash.ts'
import { tenant } from '../../../domain/access/tenant.ts'
import { debitCollection } from '../../../domain/banking/debits/debit-collection.ts'
import { type IdempotencyKeyCommand, idempotencyKey } from '../../../domain/kernel/idempotency-key.ts'
import { isRejection, type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import { gate } from '../../support/gate.ts'
import { openRegistrationProcesses, type RegistrationProcesses } from '../../support/registrations.ts'
import { shortPauses } from '../../support/short-pauses.ts'

let processes: RegistrationProcesses
let one: Application
const startProcess = async () => (await processes.open()).app
let sequence = 0
let request: KeyedCall & Pick<KeyedWork<unknown, never>, 'restore' | 'secretAnswer' | 'prepare'>

beforeAll(async () => {
  processes = await openRegistrationProcesses()
  one = processes.one.app
})
afterAll(() => processes?.close())
beforeEach(async () => {
  sequence += 1
  request = {
    caller: 'client-1',
    operation: 'register',
    key: `key-${sequence}`,
    sent: { sequence },
    context: {
      actor: { type: 'api_client', id: 'client-1' },
      tenantId: null,
      environment: null,
      correlationId: `request-${sequence}`,
      commandId: one.randomness.commandId(),
    },
  }
})

/** Claims a key for work that is more than one append: with a command id of its own, as each request has. */
function runClaimed(
  process: Application,
  { restore, secretAnswer = false, prepare, ...call }: typeof request,
  run: KeyedWork<unknown, never>['run'],
): Promise<IdempotentOutcome | Rejection> {
  const work = { run, secretAnswer, ...(restore && { restore }), ...(prepare && { prepare }) }
  const { commandId } = call.context
  const isFixed = commandId !== request.context.commandId
  const context = { ...call.context, commandId: isFixed ? commandId : process.randomness.commandId() }
  return oncePerKey(process, { ...call, context }, work)
}

const tenantIdOf = (commandId: string) => commandId.replaceAll('-', '').slice(0, 24)

/** Work with a trace in the log: registers a tenant whose id derives from the command id. */
function register(
  process: Application,
  status = 201,
): (context: CommandContext) => Promise<IdempotentAnswer> {
  return async (context) => {
    const { commandId } = context
    const tenant_id = tenantIdOf(commandId)
    await process.commands.execute(
      tenant,
      tenant_id,
      { type: 'Register', data: { tenant_id, name: 'Once' } },
      context,
    )
    return { status, body: { tenant_id }, createdId: tenant_id }
  }
}

async function registered(): Promise<string[]> {
  const page = await one.log.readAll({ after: 0n, maxCount: 1000, types: ['TenantRegistered'] })
  return page.events.map((event) => (JSON.parse(event.data) as { tenant_id: string }).tenant_id)
}

function succeeded(outcome: IdempotentOutcome | Rejection): IdempotentOutcome {
  if ('rejected' in outcome) throw new Error(outcome.message)
  return outcome
}

describe('the same request again', () => {
  test('is answered with the first answer; a creation reads 200 then', async () => {
    const before = await registered()
    const first = succeeded(await runClaimed(one, request, register(one)))
    const again = succeeded(await runClaimed(one, request, register(one)))
    expect(first).toEqual({ replayed: false, status: 201, body: { tenant_id: expect.any(String) } })
    expect(again).toEqual({ replayed: true, status: 200, body: first.body })
    expect(await registered()).toHaveLength(before.length + 1)
  })

  test('is answered where it would not be accepted any more, and a new one is refused', async () => {
    const unlessRepeated = new Error('an unknown field')
    const now = { ...request, context: { ...request.context, unlessRepeated } }
    const before = await registered()
    await expect(runClaimed(one, now, register(one))).rejects.toThrow(unlessRepeated)
    expect(await registered()).toEqual(before)
    const first = succeeded(await runClaimed(one, request, register(one)))
    expect(await runClaimed(one, now, register(one))).toEqual({
      replayed: true,
      status: 200,
      body: first.body,
    })
    const other = { ...now, sent: { other: sequence } }
    expect(await runClaimed(one, other, register(one))).toMatchObject({ code: 'idempotency_key_reused' })
  })

  test('keeps every other status', async () => {
    await runClaimed(one, request, register(one, 202))
    const again = await runClaimed(one, request, register(one, 202))
    expect(again).toMatchObject({ replayed: true, status: 202 })
  })

  test('is known to another caller or operation as nothing', async () => {
    const first = succeeded(await runClaimed(one, request, register(one)))
    for (const other of [
      { ...request, caller: 'client-2' },
      { ...request, operation: 'other' },
    ]) {
      const outcome = succeeded(await runClaimed(one, other, register(one)))
      expect(outcome.replayed).toBe(false)
      expect(outcome.body).not.toEqual(first.body)
    }
  })

  test('restores what the log must not hold', async () => {
    const restoring = {
      ...request,
      restore: (stored: unknown) => ({ ...(stored as object), fein: '12-3456789' }),
    }
    const run = async () => ({ status: 202, body: { id: 'a', fein: '12-3456789' }, stored: { id: 'a' } })
    const first = succeeded(await runClaimed(one, restoring, run))
    const again = succeeded(await runClaimed(one, restoring, run))
    expect(again.body).toEqual(first.body)
    const page = await one.log.readAll({ after: 0n, maxCount: 1000 })
    expect(page.events.map((event) => event.data + event.metadata).join()).not.toContain('12-3456789')
  })

  test('many times at once runs once', async () => {
    let runs = 0
    const work = register(one)
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, () =>
        runClaimed(one, request, (context) => {
          runs += 1
          return work(context)
        }),
      ),
    )
    expect(runs).toBe(1)
    const bodies = outcomes.map((outcome) => succeeded(outcome).body)
    expect(new Set(bodies.map((body) => JSON.stringify(body))).size).toBe(1)
    expect(outcomes.filter((outcome) => !succeeded(outcome).replayed)).toHaveLength(1)
  })
})

describe('another request under the same key', () => {
  test('is a conflict and runs nothing, also while the first is running', async () => {
    const other = { ...request, sent: { other: true } }
    const conflict = { rejected: true, kind: 'conflict', code: 'idempotency_key_reused' }
    const never = () => Promise.reject(new Error('must not run'))
    const { opened: held, open: release } = gate()
    const first = runClaimed(one, request, async (context) => {
      await held
      return register(one)(context)
    })
    const meanwhile = runClaimed(one, other, never)
    release()
    const { body } = succeeded(await first)
    // it names what the first one created
    const { tenant_id } = body as { tenant_id: string }
    const named = { ...conflict, message: expect.stringContaining(tenant_id), ids: { id: tenant_id } }
    expect(await meanwhile).toMatchObject(named)
    expect(await runClaimed(one, other, never)).toMatchObject(named)
    expect(await runClaimed(await startProcess(), other, never)).toMatchObject(named)
  })
})

test('the key of a debit is claimed by all who ask for the same debit in many processes at once', async () => {
  const five = await Promise.all(Array.from({ length: 5 }, startProcess))
  const place = { tenant_id: 'a'.repeat(24), environment: 'live' } as const
  const ids = { employer_id: place.tenant_id, carrier_id: place.tenant_id, policy_id: place.tenant_id }
  const asked = {
    ...ids,
    bank_account_id: place.tenant_id,
    amount_cents: 500,
    payment_purpose: 'paygo' as const,
    description: null,
    effective_date: null,
    metadata: {},
  } as const
  const client = { carrier_ids: 'all', employer_ids: 'all' } as const
  const sent = { key: `debit-${sequence}`, field: 'idempotency_key' }
  const named = namedDebit(one.personalData, place, sent, asked)
  const claims = five.flatMap((process) =>
    Array.from({ length: 24 }, () => {
      const context = { ...request.context, commandId: process.randomness.commandId() }
      return claimKey(process, client, named, context)
    }),
  )
  expect(await Promise.all(claims)).toEqual(claims.map(() => null))
  expect(await one.log.readStream(`debitKey-${named.key}`)).toHaveLength(1)
  const other = namedDebit(one.personalData, place, sent, { ...asked, amount_cents: 501 })
  const context = { ...request.context, commandId: one.randomness.commandId() }
  expect(await claimKey(one, client, other, context)).toMatchObject({ code: 'debit_key_reused' })

  // a collection that loses a key gives the others back, though whoever was to do so died
  const second = { ...sent, key: `${sent.key}-second` }
  const [entry, another] = [500, 501].map((amount_cents) =>
    namedDebit(one.personalData, place, second, { ...asked, amount_cents }),
  )
  const collectionId = 'c'.repeat(24)
  const step = () => ({ ...request.context, commandId: one.randomness.commandId() })
  expect(await claimKey(one, client, entry!, step(), collectionId)).toBeNull()
  expect(await claimKey(one, client, another!, step())).toMatchObject({ code: 'debit_key_reused' })
  const refuse = { type: 'Refuse', collectionId, at: 0 } as const
  await one.commands.execute(debitCollection, collectionId, refuse, step())
  expect(await existingDebit(one, another!)).toBeNull()
  expect(await claimKey(one, client, another!, step())).toBeNull()
  expect(await existingDebit(one, entry!)).toBe('other')
})

describe('an answer that holds a secret', () => {
  test('is not stored; the repeated key is a conflict that names what was created', async () => {
    const secret = { ...request, secretAnswer: true }
    const run = async (context: CommandContext) => {
      const answer = await register(one)(context)
      return { ...answer, body: { api_key: 'mcp_very-secret' } }
    }
    const [first, parallel] = await Promise.all([runClaimed(one, secret, run), runClaimed(one, secret, run)])
    expect(first).toMatchObject({ replayed: false, status: 201, body: { api_key: 'mcp_very-secret' } })
    const created = (await registered()).at(-1)
    for (const repeated of [parallel, await runClaimed(one, secret, run)]) {
      expect(repeated).toMatchObject({
        kind: 'conflict',
        code: 'idempotency_key_used',
        message: expect.stringContaining(created!),
      })
    }
    const page = await one.log.readAll({ after: 0n, maxCount: 1000 })
    expect(page.events.map((event) => event.data).join()).not.toContain('very-secret')
  })
})

describe('a failed attempt', () => {
  test('that was refused is shared by those who waited, and leaves the key to another request', async () => {
    const refusal = reject('not_found', 'policy_not_found', 'No such policy')
    const refuse = async () => refusal
    expect(await Promise.all([1, 2].map(() => runClaimed(one, request, refuse)))).toEqual([refusal, refusal])
    const corrected = { ...request, sent: 'corrected' }
    const two = await startProcess()
    const first = succeeded(await runClaimed(two, corrected, register(two)))
    expect(first).toMatchObject({ replayed: false, status: 201 })
    for (const process of [one, two]) {
      expect(await runClaimed(process, corrected, refuse)).toMatchObject({ replayed: true, body: first.body })
      expect(await runClaimed(process, request, refuse)).toMatchObject({ code: 'idempotency_key_reused' })
    }
  })

  test('that a check refused stores nothing and leaves the key to another request', async () => {
    const head = await one.log.head()
    const refusal = reject('not_found', 'policy_not_found', 'No such policy')
    for (const prepare of [async () => refusal, () => Promise.reject(new Error('no such policy'))]) {
      const outcome = runClaimed(one, { ...request, prepare }, register(one)).catch((error: Error) => error)
      expect(await outcome).toMatchObject({ message: expect.stringMatching(/no such policy/i) })
      expect(await one.log.head()).toBe(head)
    }
    const corrected = { ...request, sent: 'corrected' }
    expect(await runClaimed(one, corrected, register(one))).toMatchObject({ status: 201 })
  })

  test('that died leaves its key to a retry, and to another request once that was refused', async () => {
    onTestFinished(shortPauses())
    const two = await startProcess()
    const corrected = { ...request, sent: 'corrected' }
    await expect(runClaimed(one, request, () => Promise.reject(new Error('died')))).rejects.toThrow('died')
    expect(await runClaimed(two, corrected, register(two))).toMatchObject({ code: 'idempotency_key_reused' })
    const refusal = reject('conflict', 'fein_taken', 'Taken meanwhile')
    const refused = await runClaimed(two, { ...request, prepare: async () => refusal }, register(two))
    expect(refused).toEqual(refusal)
    expect(await runClaimed(one, corrected, register(one))).toMatchObject({ status: 201, replayed: false })
  })

  test('that waited for another is done by itself, once that was refused', async () => {
    const two = await startProcess()
    const { opened: held, open: refuse } = gate()
    const { opened: isClaimed, open: claimed } = gate()
    const refusal = reject('conflict', 'fein_taken', 'Taken')
    const first = runClaimed(one, request, async () => {
      claimed()
      await held
      return refusal
    })
    await isClaimed
    const look = vi.spyOn(two.log, 'readStream')
    const second = runClaimed(two, request, register(two))
    await vi.waitFor(() => expect(look).toHaveBeenCalled(), 240_000)
    refuse()
    expect(await first).toEqual(refusal)
    expect(await second).toMatchObject({ replayed: false, status: 201 })
    expect(await runClaimed(one, request, register(one))).toMatchObject({ replayed: true })
  })
})

describe('a request within another one', () => {
  test('claims the command id of the other; a key that was claimed before keeps its own', async () => {
    onTestFinished(shortPauses())
    const seen: string[] = []
    const dies = ({ commandId }: CommandContext) => {
      seen.push(commandId)
      return Promise.reject(new Error('died'))
    }
    const within = (key: string, commandId?: string) =>
      runClaimed(
        one,
        {
          ...request,
          key: `${request.key}/${key}`,
          context: { ...request.context, ...(commandId !== undefined && { commandId }) },
        },
        dies,
      )
    const outer = one.randomness.commandId()
    for (const key of ['first', 'second', 'second']) await expect(within(key, outer)).rejects.toThrow('died')
    expect(seen).toEqual([outer, outer, outer])

    await expect(within('earlier')).rejects.toThrow('died')
    const own = seen.at(-1)
    expect(own).not.toBe(outer)
    await expect(within('earlier', outer)).rejects.toThrow('died')
    expect(seen.at(-1)).toBe(own)
  })

  test('is prepared with the command id that its work is done under, and as a repetition once that was claimed', async () => {
    onTestFinished(shortPauses())
    const prepare = async ({ commandId, mayRepeat = false }: CommandContext) => ({ commandId, mayRepeat })
    const seen: object[] = []
    for (const _attempt of [1, 2]) {
      const died = runClaimed(one, { ...request, prepare }, ({ commandId }, prepared) => {
        seen.push({ commandId, prepared })
        return Promise.reject(new Error('died'))
      })
      await expect(died).rejects.toThrow('died')
    }
    const { commandId } = seen[0] as CommandContext
    expect(seen).toEqual([
      { commandId, prepared: { commandId, mayRepeat: false } },
      { commandId, prepared: { commandId, mayRepeat: true } },
    ])
  })
})

test('a key that the build before claims at the same moment is carried out once, and answered alike by both', async () => {
  onTestFinished(shortPauses())
  const two = await startProcess()
  for (let round = 0; round < 8; round += 1) {
    const call = { ...request, key: `${request.key}-${round}` }
    const { personalData, commands, randomness } = one
    const ofKey = personalData.fingerprint('idempotency', `${call.caller}|${call.operation}|${call.key}`)
    const hash = await requestHash(call.sent)
    const request_hash = personalData.fingerprint('idempotent_request', `${ofKey}|${hash}`)
    const decide = async (...list: IdempotencyKeyCommand[]) => {
      const context = { ...call.context, commandId: randomness.commandId() }
      const outcome = await commands.execute(idempotencyKey, ofKey, list, context)
      if (isRejection(outcome)) throw new Error(outcome.message)
      return outcome.state
    }
    /** As the build before does it: it claims without an id, and keeps every answer. */
    const before = async () => {
      const data = { fingerprint: ofKey, request_hash, command_id: randomness.commandId() }
      const { claimed, answered } = await decide({ type: 'Claim', data })
      if (answered) return answered.body
      const commandId = claimed!.command_id
      const made = await register(one)({ ...call.context, commandId, mayRepeat: true })
      const { status, body, createdId: created_id = null } = made as IdempotentAnswer
      const answer = { fingerprint: ofKey, status, body, created_id }
      return (await decide({ type: 'Answer', data: answer })).answered!.body
    }
    const telling = () =>
      oncePerKey(
        two,
        { ...call, context: { ...call.context, commandId: randomness.commandId() } },
        {
          prepare: async ({ commandId }) => tenantIdOf(commandId),
          run: register(two),
          tells: {
            decider: tenant,
            idOf: (id) => id,
            async answerOf(tenant_id) {
              const { state } = await two.commands.load(tenant, tenant_id)
              return state && { status: 201, body: { tenant_id }, createdId: tenant_id }
            },
          },
        },
      )
    const already = (await registered()).length
    // each is the first one in turn, and in some rounds they race
    const first =
      round % 4 === 0 ? [await before()] : round % 4 === 1 ? [succeeded(await telling()).body] : []
    const raced = await Promise.all([before(), telling().then((outcome) => succeeded(outcome).body)])
    const bodies = [...first, ...raced, await before(), succeeded(await telling()).body]
    expect(bodies).toEqual(bodies.map(() => bodies[0]))
    expect((await registered()).length).toBe(already + 1)
  }
})

test('work whose id tells its answer leaves the claim alone with its key', async () => {
  onTestFinished(shortPauses())
  const call = { ...request, context: { ...request.context, commandId: one.randomness.commandId() } }
  const tenant_id = tenantIdOf(call.context.commandId)
  const telling = (sent: object = {}, run = register(one)) =>
    oncePerKey(
      one,
      { ...call, sent },
      {
        run,
        tells: {
          decider: tenant,
          idOf: () => tenant_id,
          answerOf: async () => ({ status: 201, body: { tenant_id }, createdId: tenant_id }),
        },
      },
    )
  const died = telling({}, async () => {
    throw new Error('died')
  })
  await expect(died).rejects.toThrow('died')
  // what the key was claimed for is not there: nobody is sent to look for it
  expect(await telling({ other: true })).not.toHaveProperty('ids')
  expect(await telling()).toEqual({ replayed: false, status: 201, body: { tenant_id } })
  const awaited = vi.spyOn(one.readModels, 'awaitProjections')
  expect(await telling()).toEqual({ replayed: true, status: 200, body: { tenant_id } })
  const [created] = await one.log.readStream(`tenant-${tenant_id}`)
  expect(awaited).toHaveBeenCalledWith(tenant, created!.position)
  awaited.mockRestore()
  const other = { code: 'idempotency_key_reused', ids: { id: tenant_id } }
  expect(await telling({ other: true })).toMatchObject(other)
  const ofKey = one.personalData.fingerprint('idempotency', `${call.caller}|${call.operation}|${call.key}`)
  const stored = await one.log.readStream(`idempotencyKey-${ofKey}`)
  expect(stored.map(({ type }) => type)).toEqual(['IdempotencyKeyClaimed'])
})

describe('two processes', () => {
  test('with one key: the second waits for the first and answers the same', async () => {
    const two = await startProcess()
    const before = await registered()
    const { opened: isClaimed, open: claimed } = gate()
    const { opened: held, open: release } = gate()
    const first = runClaimed(one, request, async (context) => {
      claimed()
      await held
      return register(one)(context)
    })
    await isClaimed
    const looks = [vi.spyOn(two.log, 'readStream'), vi.spyOn(two.log, 'changes')]
    let runsOfSecond = 0
    const second = runClaimed(two, request, (context) => {
      runsOfSecond += 1
      return register(two)(context)
    })
    // it looks at the key before and for its claim; again and again means that it polls
    await vi.waitFor(() => {
      expect(looks.reduce((count, { mock }) => count + mock.calls.length, 0)).toBeGreaterThan(4)
    }, 240_000)
    release()
    const [a, b] = [succeeded(await first), succeeded(await second)]
    expect(b.body).toEqual(a.body)
    expect([a.replayed, b.replayed]).toEqual([false, true])
    expect(runsOfSecond).toBe(0)
    expect(await registered()).toHaveLength(before.length + 1)
  })

  test('an attempt that another took over is answered as the other was, not by its own outcome', async () => {
    onTestFinished(shortPauses())
    const two = await startProcess()
    for (const secretAnswer of [false, true]) {
      const keyed = { ...request, key: `${request.key}-${secretAnswer}`, secretAnswer }
      const [begun, rest] = [gate(), gate()]
      const slow = runClaimed(one, keyed, async () => {
        begun.open()
        await rest.opened
        return { status: 201, body: { by: 'the slow one' }, createdId: 'slow' }
      })
      await begun.opened
      const other = async () => ({ status: 201, body: { by: 'the other' }, createdId: 'other' })
      const first = await runClaimed(two, keyed, other)
      expect(first).toMatchObject({ replayed: false, status: 201, body: { by: 'the other' } })
      rest.open()
      const expected = secretAnswer
        ? { rejected: true, code: 'idempotency_key_used', message: expect.stringContaining('for other') }
        : { replayed: true, status: 200, body: { by: 'the other' } }
      expect(await slow).toMatchObject(expected)
      for (const process of [one, two]) {
        expect(await runClaimed(process, keyed, other)).toMatchObject(expected)
      }
    }
  })

  test('the second finishes what the first died over', async () => {
    onTestFinished(shortPauses())
    const two = await startProcess()
    const before = await registered()
    let firstId = ''
    const died = runClaimed(one, request, async (context) => {
      firstId = context.commandId
      await register(one)(context)
      throw new Error('died')
    })
    await expect(died).rejects.toThrow('died')
    let secondId = ''
    const outcome = await runClaimed(two, request, (context) => {
      secondId = context.commandId
      return register(two)(context)
    })
    expect(outcome).toMatchObject({ replayed: false, status: 201 })
    expect(secondId).toBe(firstId)
    expect(await registered()).toHaveLength(before.length + 1)
    expect(await runClaimed(one, request, register(one))).toMatchObject({ replayed: true })
  })
})
