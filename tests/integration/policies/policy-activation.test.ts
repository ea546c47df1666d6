import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Application } from '../../../application/commands/application.ts'
import { holderOf, policyNumberReservation } from '../../../application/commands/reservations.ts'
import { activatePolicy } from '../../../application/policies/activation.ts'
import * as policies from '../../../application/policies/policies.ts'
import { isRejection } from '../../../domain/kernel/rejection.ts'
import { type ReservationCommand, reservation } from '../../../domain/kernel/reservation.ts'
import { type Policy, policy } from '../../../domain/policies/policy.ts'
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
  registerInsured,
  waitingBefore,
} from '../../support/registrations.ts'
import { newPolicyNumber } from '../../support/seed.ts'
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

const issue = (
  app: Application,
  policyNumber: string,
  {
    status = 'in_progress',
    commandId = randomUUID(),
    to = '2099-12-31',
  }: Partial<{
    status: 'active' | 'in_progress'
    commandId: string
    to: string
  }> = {},
) =>
  issuePolicy(
    app,
    {
      employer_id: employerId,
      carrier_id: carrierId,
      policy_number: policyNumber,
      status,
      effective_date: '2020-01-01',
      expiration_date: to,
      ...NO_TERMS,
      billing_type: 'DIRECT_BILLING',
      annual_premium_cents: null,
      overtime_exclusion: false,
    },
    operatorContext(commandId),
  )
const issued = async (policyNumber: string, status: 'active' | 'in_progress' = 'in_progress') =>
  accepted(await issue(one.app, policyNumber, { status })).policy_id
const statusOf = async (policyId: string) => (await one.app.commands.load(policy, policyId)).state!.status
const holder = (number: string) =>
  holderOf(one.app, policyNumberReservation(one.app.personalData, tenantId, 'live', number))
const eventsOf = async (policyId: string) =>
  (await one.app.log.readStream(`policy-${policyId}`)).map(({ type }) => type)
/** Null: it died. */
const attempt = async (app: Application, policyId: string, commandId: string, crash?: CrashPoint) => {
  try {
    return await activatePolicy(crash ? crashingAt(app, crash) : app, policyId, operatorContext(commandId))
  } catch (error) {
    if (error instanceof Crashed) return null
    throw error
  }
}

describe('an activation', () => {
  test.each([
    ['before it reserved the number', { category: 'reservation', at: 'before' }],
    ['after it reserved the number', { category: 'reservation', at: 'after' }],
    ['before the policy was active', { category: 'policy', at: 'before' }],
    ['after the policy was active', { category: 'policy', at: 'after' }],
  ] as const)('that died %s is finished when it comes again', async (_when, crash) => {
    const number = newPolicyNumber()
    const [id, command] = [await issued(number), randomUUID()]
    expect(await attempt(one.app, id, command, crash)).toBeNull()
    expect(accepted((await attempt(two.app, id, command))!).status).toBe('active')
    expect(accepted((await attempt(one.app, id, command))!).status).toBe('active')
    expect(await holder(number)).toBe(id)
    expect(await eventsOf(id)).toEqual(['PolicyIssued', 'PolicyActivated'])
  })

  test('that is under way has the number: nobody else gets it meanwhile', async () => {
    const number = newPolicyNumber()
    const [id, rival] = [await issued(number), await issued(number)]
    const late = waitingBefore(one.app, 'policy')
    const outcome = activatePolicy(late.app, id, operatorContext())
    await late.arrived
    expect(await issue(two.app, number, { status: 'active' })).toMatchObject({ code: 'policy_number_taken' })
    expect(await attempt(two.app, rival, randomUUID())).toMatchObject({ code: 'policy_number_taken' })
    late.goOn()
    expect(accepted(await outcome).status).toBe('active')
    expect(await statusOf(rival)).toBe('in_progress')
  })

  test('does not take a number from a command that may still go on; an operator clears up after one that died', async () => {
    const number = newPolicyNumber()
    const [id, command] = [await issued(number), randomUUID()]
    const late = waitingBefore(one.app, 'policy')
    const outcome = issue(late.app, number, { status: 'active' })
    await late.arrived
    expect(await attempt(two.app, id, command)).toMatchObject({ code: 'policy_number_taken' })
    late.goOn()
    expect(accepted(await outcome).status).toBe('active')
    expect(await eventsOf(id)).toEqual(['PolicyIssued', 'PolicyNotActivated'])

    const another = newPolicyNumber()
    const waiting = await issued(another)
    const dying = crashingAt(one.app, { category: 'policy', at: 'before' })
    await expect(issue(dying, another, { status: 'active' })).rejects.toThrow(Crashed)
    expect(await attempt(two.app, waiting, randomUUID())).toMatchObject({ code: 'policy_number_taken' })
    const substitute = accepted(await issue(two.app, another, { status: 'active' })).policy_id
    accepted(await policies.cancel(two.app, substitute, null, operatorContext()))
    expect(accepted((await attempt(two.app, waiting, randomUUID()))!).status).toBe('active')
  })

  test('of a policy that is cancelled meanwhile gives the number back, and raises one alert', async () => {
    const number = newPolicyNumber()
    const [id, command] = [await issued(number), randomUUID()]
    const late = waitingBefore(one.app, 'policy')
    const outcome = activatePolicy(late.app, id, operatorContext(command))
    await late.arrived
    accepted(await policies.cancel(two.app, id, null, operatorContext()))
    late.goOn()
    expect(await outcome).toMatchObject({ code: 'policy_cancelled' })
    expect(await holder(number)).toBeNull()
    for (const { app } of [one, two]) {
      expect(await attempt(app, id, command)).toMatchObject({ code: 'policy_cancelled' })
    }
    expect(await eventsOf(id)).toEqual(['PolicyIssued', 'PolicyCancelled', 'PolicyNotActivated'])
  })

  test('that went through is answered the same after the policy was cancelled', async () => {
    const [id, command] = [await issued(newPolicyNumber()), randomUUID()]
    accepted((await attempt(one.app, id, command))!)
    accepted(await policies.cancel(one.app, id, null, operatorContext()))
    expect(isRejection(await attempt(two.app, id, command))).toBe(false)
    expect(await eventsOf(id)).toEqual(['PolicyIssued', 'PolicyActivated', 'PolicyCancelled'])
  })

  test('has the number that another reserved and gave back while it asked', async () => {
    const number = newPolicyNumber()
    const id = await issued(number)
    const { commands } = one.app
    let isRaced = false
    const race = async (...[decider, of, command, context]: Parameters<typeof commands.execute>) => {
      if (isRaced || decider.category !== reservation.category) {
        return commands.execute(decider, of, command, context)
      }
      isRaced = true
      const another = { ...(command as ReservationCommand).data, owner_id: '0'.repeat(24) }
      const other = (type: 'Reserve' | 'Release') =>
        two.app.commands.execute(reservation, of, { type, data: another }, operatorContext())
      await other('Reserve')
      const refused = await commands.execute(decider, of, command, context)
      expect(refused).toMatchObject({ code: 'policy_number_taken' })
      await other('Release')
      return refused
    }
    const racing = new Proxy(commands, {
      get(target, name) {
        const member: unknown = name === 'execute' ? race : Reflect.get(target, name, target)
        return typeof member === 'function' ? member.bind(target) : member
      },
    })
    const outcome = await activatePolicy({ ...one.app, commands: racing }, id, operatorContext())
    expect(accepted(outcome).status).toBe('active')
    expect([isRaced, await holder(number)]).toEqual([true, id])
  })

  test('that had reserved the number before it died ends when the policy is cancelled meanwhile', async () => {
    const number = newPolicyNumber()
    const [id, command] = [await issued(number), randomUUID()]
    expect(await attempt(one.app, id, command, { category: 'reservation', at: 'after' })).toBeNull()
    let isCancelled = false
    const { commands } = one.app
    const load = async (...args: Parameters<typeof commands.load>) => {
      const loaded = await commands.load(...args)
      if (!isCancelled && args[1] === id) {
        isCancelled = true
        accepted(await policies.cancel(two.app, id, null, operatorContext()))
      }
      return loaded
    }
    const racing = new Proxy(commands, {
      get(target, name) {
        const member: unknown = name === 'load' ? load : Reflect.get(target, name, target)
        return typeof member === 'function' ? member.bind(target) : member
      },
    })
    const outcome = await activatePolicy({ ...one.app, commands: racing }, id, operatorContext(command))
    expect(outcome).toMatchObject({ code: 'policy_cancelled' })
    expect([isCancelled, await holder(number)]).toEqual([true, null])
  })

  test('takes the number of a policy that has expired', async () => {
    const { clock } = one.app
    const number = newPolicyNumber()
    const day = (ms: number) => new Date(ms).toISOString().slice(0, 10)
    const old = await issue(one.app, number, { status: 'active', to: day(clock.now() + 86_400_000) })
    const id = await issued(number)
    expect(await attempt(one.app, id, randomUUID())).toMatchObject({ ids: { id: accepted(old).policy_id } })
    moveClock(one.app, clock.now() + 3 * 86_400_000)
    expect(accepted((await attempt(one.app, id, randomUUID()))!).status).toBe('active')
    expect(await holder(number)).toBe(id)
  })
})

test('a number is that of one active policy at the most, whatever activates, issues, cancels and dies', async () => {
  const { numRuns, seed } = runs(3)
  const random = seededRandom(seed)
  for (let round = 0; round < numRuns; round += 1) {
    const number = newPolicyNumber()
    const waiting = await Promise.all([1, 2, 3].map(() => issued(number)))
    const commands = new Map(waiting.map((id) => [id, randomUUID()]))
    const made: string[] = [...waiting]
    for (let step = 0; step < 10; step += 1) {
      const batch = Array.from({ length: random.between(1, 4) }, async () => {
        const { app } = random.pick([one, two])
        const category = random.pick(['reservation', 'policy'])
        const crash = { category, at: random.pick(['before', 'after'] as const) }
        const using = random.pick([true, false]) ? crashingAt(app, crash) : app
        const what = random.pick(['activate', 'activate', 'issue', 'cancel'])
        const id = random.pick(made)
        try {
          if (what === 'activate') {
            await activatePolicy(using, id, operatorContext(commands.get(id) ?? randomUUID()))
          } else if (what === 'cancel') await policies.cancel(using, id, null, operatorContext())
          else {
            const outcome = await issue(using, number, { status: 'active' })
            if (!isRejection(outcome)) made.push(outcome.policy_id)
          }
        } catch (error) {
          if (!(error instanceof Crashed)) throw error
        }
      })
      await Promise.all(batch)
      const page = await one.app.log.readAll({ after: 0n, maxCount: 100_000, types: ['PolicyIssued'] })
      const ids = page.events.map(({ stream }) => stream.slice('policy-'.length))
      const states = await Promise.all(
        ids.map(async (id) => (await one.app.commands.load(policy, id)).state as Policy),
      )
      const active = states.filter((state) => state.policy_number === number && state.status === 'active')
      expect(active.length, `seed ${seed}`).toBeLessThanOrEqual(1)
      if (active.length === 1) expect(await holder(number), `seed ${seed}`).toBe(active[0]!.policy_id)
    }
  }
})
