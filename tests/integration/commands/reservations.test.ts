// @module-tag each-log
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Application } from '../../../application/commands/application.ts'
import {
  feinReservation,
  policyNumberReservation,
  release,
  reserve,
} from '../../../application/commands/reservations.ts'
import { ALERTS } from '../../../application/operations/alert-kinds.ts'
import * as policies from '../../../application/policies/policies.ts'
import { isRejection } from '../../../domain/kernel/rejection.ts'
import { reservation } from '../../../domain/kernel/reservation.ts'
import { employer } from '../../../domain/parties/employer.ts'
import type { Policy } from '../../../domain/policies/policy.ts'
import { runs } from '../../support/generated.ts'
import {
  accepted,
  Crashed,
  type CrashPoint,
  crashingAt,
  issuePolicy,
  moveClock,
  NO_TERMS,
  openRegistrationProcesses,
  operatorContext,
  type RegistrationProcess,
  type RegistrationProcesses,
  registerEmployer,
  registerInsured,
  waitingBefore,
} from '../../support/registrations.ts'
import { newFein, newPolicyNumber } from '../../support/seed.ts'
import { seededRandom } from '../../support/seeded-random.ts'

let processes: RegistrationProcesses
let one: RegistrationProcess
let two: RegistrationProcess
let tenantId: string
let employerId: string
let carrierId: string

beforeAll(async () => {
  processes = await openRegistrationProcesses()
  ;({ one, two } = processes)
  ;({ tenantId, carrierId, employerId } = await registerInsured(one.app))
})
afterAll(() => processes?.close())

const advance = (ms: number) => moveClock(one.app, one.app.clock.now() + ms)

/** Creates what holds a FEIN. */
const FEIN = {
  category: 'employer',
  type: 'EmployerRegistered',
  code: 'fein_taken',
  newValue: newFein,
  idOf: (created: object) => (created as { employer_id: string }).employer_id,
  create: (app: Application, fein: string, commandId?: string) =>
    registerEmployer(
      app,
      {
        tenant_id: tenantId,
        environment: 'live',
        legal_name: `Employer ${fein}`,
        fein,
        address: null,
        contact_email: null,
        payroll_company_ids: [],
      },
      operatorContext(commandId),
    ),
  reservationOf: (app: Application, fein: string) => feinReservation(app.personalData, 'live', fein),
} as const

/** Creates what holds a policy number. */
const POLICY_NUMBER = {
  category: 'policy',
  type: 'PolicyIssued',
  code: 'policy_number_taken',
  newValue: newPolicyNumber,
  idOf: (created: object) => (created as { policy_id: string }).policy_id,
  create: (app: Application, policyNumber: string, commandId?: string) =>
    issuePolicy(
      app,
      {
        employer_id: employerId,
        carrier_id: carrierId,
        policy_number: policyNumber,
        status: 'active',
        effective_date: '2020-01-01',
        expiration_date: '2099-12-31',
        ...NO_TERMS,
        annual_premium_cents: null,
        overtime_exclusion: false,
      },
      operatorContext(commandId),
    ),
  reservationOf: (app: Application, number: string) =>
    policyNumberReservation(app.personalData, tenantId, 'live', number),
} as const

async function countOf(type: string): Promise<number> {
  const page = await one.app.log.readAll({ after: 0n, maxCount: 10_000, types: [type] })
  return page.events.length
}

async function holderOf(id: string): Promise<string | null> {
  return (await one.app.commands.load(reservation, id)).state.owner_id
}

describe.each([
  ['a FEIN', FEIN],
  ['a policy number', POLICY_NUMBER],
] as const)('%s', (_, kind) => {
  const { category, type, code, create, idOf, newValue } = kind
  const holder = (value: string) => holderOf(kind.reservationOf(one.app, value).id)
  /** Attempts of commands that die; others end as they do. */
  const attempt = async (app: Application, value: string, commandId: string, crash?: CrashPoint) => {
    try {
      return await create(crash ? crashingAt(app, crash) : app, value, commandId)
    } catch (error) {
      if (error instanceof Crashed) return null
      throw error
    }
  }

  test.each([
    ['reserved it', { category: 'reservation', at: 'after' }],
    ['was about to create', { category, at: 'before' }],
  ] as const)('of a command that %s and died passes to another, for good', async (_what, crash) => {
    for (const wait of [0, 10 * 60_000, 10 * 60_000 + 1]) {
      const [value, a, b] = [newValue(), randomUUID(), randomUUID()]
      const before = await countOf(type)
      expect(await attempt(one.app, value, a, crash)).toBeNull()
      advance(wait)
      const created = accepted(await create(two.app, value, b))
      // the same process, and one that knows nothing of it yet
      for (const { app } of [one, two, one]) {
        expect(await create(app, value, a)).toMatchObject({ rejected: true, kind: 'conflict', code })
      }
      expect(idOf(accepted(await create(one.app, value, b)))).toBe(idOf(created))
      expect(await holder(value)).toBe(idOf(created))
      expect(await countOf(type)).toBe(before + 1)
    }
  })

  test('of a command that died is its own still when it is retried first', async () => {
    const [value, a] = [newValue(), randomUUID()]
    await attempt(one.app, value, a, { category, at: 'before' })
    advance(11 * 60_000)
    const created = accepted(await create(two.app, value, a))
    expect(await create(one.app, value)).toMatchObject({ code })
    expect(await holder(value)).toBe(idOf(created))
  })

  test('of a command that created and died before its answer is answered by a retry', async () => {
    for (const died of [false, true]) {
      const [value, a, b] = [newValue(), randomUUID(), randomUUID()]
      if (died) await attempt(one.app, value, b, { category, at: 'before' })
      const before = await countOf(type)
      await attempt(one.app, value, a, { category, at: 'after' })
      advance(11 * 60_000)
      expect(await create(two.app, value, b)).toMatchObject({ code })
      const created = accepted(await create(two.app, value, a))
      expect(await holder(value)).toBe(idOf(created))
      expect(await countOf(type)).toBe(before + 1)
    }
  })

  test('of a command that goes on after another has created it stays the other’s', async () => {
    const [value, a] = [newValue(), randomUUID()]
    const before = await countOf(type)
    const late = waitingBefore(one.app, category)
    const outcome = create(late.app, value, a)
    await late.arrived
    advance(11 * 60_000)
    const created = accepted(await create(two.app, value))
    late.goOn()
    expect(await outcome).toMatchObject({ rejected: true, code })
    expect(await create(two.app, value, a)).toMatchObject({ rejected: true, code })
    expect(await holder(value)).toBe(idOf(created))
    expect(await countOf(type)).toBe(before + 1)
  })

  test('is held once whatever dies when, and answers each command the same for ever', async () => {
    const { numRuns, seed } = runs(4)
    const random = seededRandom(seed)
    for (let round = 0; round < numRuns; round += 1) {
      const value = newValue()
      const before = await countOf(type)
      const commands = [randomUUID(), randomUUID(), randomUUID()]
      const answers = new Map<string, string>()
      for (let step = 0; step < 8; step += 1) {
        const batch = Array.from({ length: random.between(1, 3) }, async () => {
          const command = random.pick(commands)
          const crash = random.pick([
            undefined,
            { category: 'reservation', at: random.pick(['before', 'after'] as const) },
            { category, at: random.pick(['before', 'after'] as const) },
          ])
          const outcome = await attempt(random.pick([one, two]).app, value, command, crash)
          if (outcome !== null && !isRejection(outcome)) {
            expect(answers.get(command) ?? idOf(outcome), `seed ${seed}`).toBe(idOf(outcome))
            answers.set(command, idOf(outcome))
          }
        })
        await Promise.all(batch)
        if (random.pick([true, false])) advance(11 * 60_000)
      }
      expect(answers.size, `seed ${seed}`).toBeLessThanOrEqual(1)
      const last = await Promise.all(commands.map((command) => create(one.app, value, command)))
      const winners = last.filter((outcome) => !isRejection(outcome))
      expect(winners, `seed ${seed}`).toHaveLength(1)
      expect(await holder(value), `seed ${seed}`).toBe(idOf(accepted(winners[0]!)))
      expect(await countOf(type), `seed ${seed}`).toBe(before + 1)
    }
  })
})

describe('the number of a policy', () => {
  test('is free when the policy is cancelled; who held it before does not give it back again', async () => {
    const [number, a] = [newPolicyNumber(), randomUUID()]
    await create(a, { category: 'policy', at: 'before' })
    const first = accepted(await POLICY_NUMBER.create(two.app, number)) as Policy
    await policies.cancel(one.app, first.policy_id, null, operatorContext())
    const value = POLICY_NUMBER.reservationOf(one.app, number)
    expect(await holderOf(value.id)).toBeNull()
    const second = accepted(await POLICY_NUMBER.create(two.app, number)) as Policy
    expect(second.policy_id).not.toBe(first.policy_id)
    expect(await create(a)).toMatchObject({ code: 'policy_number_taken' })
    await policies.cancel(one.app, first.policy_id, null, operatorContext())
    await release(one.app, value, first.policy_id, operatorContext())
    expect(await holderOf(value.id)).toBe(second.policy_id)

    async function create(commandId: string, crash?: CrashPoint) {
      try {
        return await POLICY_NUMBER.create(crash ? crashingAt(one.app, crash) : one.app, number, commandId)
      } catch {
        return null
      }
    }
  })

  test('passes to one of many when its policy is out of force', async () => {
    const number = newPolicyNumber()
    const old = accepted(await POLICY_NUMBER.create(one.app, number)) as Policy
    // cancelled by a process that died before it gave the number back
    const dying = crashingAt(one.app, { category: 'reservation', at: 'before' })
    await expect(policies.cancel(dying, old.policy_id, null, operatorContext())).rejects.toThrow(Crashed)
    const outcomes = await Promise.all(
      Array.from({ length: 6 }, (_, index) =>
        POLICY_NUMBER.create(index % 2 === 0 ? one.app : two.app, number),
      ),
    )
    expect(outcomes.filter((outcome) => !isRejection(outcome))).toHaveLength(1)
  })
})

test('a number that a dead command left stands in the way of an activation until somebody takes it up', async () => {
  const number = newPolicyNumber()
  const dying = crashingAt(one.app, { category: 'policy', at: 'before' })
  await expect(POLICY_NUMBER.create(dying, number)).rejects.toThrow(Crashed)
  const left = await holderOf(POLICY_NUMBER.reservationOf(one.app, number).id)
  const waiting = accepted(
    await issuePolicy(
      one.app,
      {
        employer_id: employerId,
        carrier_id: carrierId,
        policy_number: number,
        status: 'in_progress',
        effective_date: '2020-01-01',
        expiration_date: '2099-12-31',
        ...NO_TERMS,
        annual_premium_cents: null,
        overtime_exclusion: false,
      },
      operatorContext(),
    ),
  )
  const activate = () => policies.activate(one.app, waiting.policy_id, operatorContext())
  expect(await activate()).toMatchObject({ code: 'policy_number_taken', ids: { id: left } })

  // what the alert says to do
  expect(ALERTS.policy_not_activated.message).toContain('create an active policy of that number')
  const taken = accepted(await POLICY_NUMBER.create(one.app, number))
  expect(taken.policy_id).toBe(left)
  accepted(await policies.cancel(one.app, taken.policy_id, null, operatorContext()))
  expect(accepted(await activate()).status).toBe('active')
})

test('a command whose early reservation another has replaced does not hold it', async () => {
  const value = { kind: 'fein', fingerprint: randomUUID(), id: `fein_live_${randomUUID()}` } as const
  const a = operatorContext()
  const holder = { decider: employer, creates: 'Register', id: '1'.repeat(24), hasLost: () => false }
  expect(await reserve(one.app, value, holder, a)).toBe(holder.id)
  // as earlier releases took over what was abandoned
  const other = accepted(await FEIN.create(one.app, newFein())) as { employer_id: string }
  const { kind, fingerprint } = value
  await one.app.commands.execute(
    reservation,
    value.id,
    { type: 'Reserve', data: { kind, fingerprint, owner_id: other.employer_id }, replaces: holder.id },
    operatorContext(),
  )
  expect(await reserve(one.app, value, holder, a)).toBeNull()
})
