// @module-tag each-log
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { AggregateCache } from '../../../application/commands/aggregates.ts'
import { CommandHandler } from '../../../application/commands/command-handler.ts'
import type { EventLog } from '../../../application/ports/event-log.ts'
import { tenant } from '../../../domain/access/tenant.ts'
import { primaryAccount } from '../../../domain/banking/accounts/primary-account.ts'
import { isRejection } from '../../../domain/kernel/rejection.ts'
import { virtualClock } from '../../../domain/operations/virtual-clock.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { gate } from '../../support/gate.ts'
import { revisionOf } from '../../support/log.ts'
import { operatorContext } from '../../support/registrations.ts'
import { openWorkbench, type Workbench } from '../../support/workbench.ts'

let database: TestDatabase
let one: Workbench
let other: Workbench

beforeAll(async () => {
  database = await createTestDatabase()
  one = await openWorkbench(database.url)
  // a second process on the same log
  other = await openWorkbench(database.url)
})
afterAll(async () => {
  await one?.close()
  await other?.close()
  await database?.drop()
})

const tenantId = () => randomUUID().replaceAll('-', '').slice(0, 24)
const register = (tenant_id: string, name: string) =>
  ({ type: 'Register', data: { tenant_id, name } }) as const
const moveTo = (process: Workbench, id: string, to: number, context = operatorContext()) =>
  process.commands.execute(virtualClock, id, { type: 'MoveTo', to }, context)
const eventsOf = (id: string) => one.log.readStream(`tenant-${id}`)

/** A log whose append stores the events and then loses the answer, once. */
function losingOneAnswer(log: EventLog): EventLog {
  let lose = true
  return new Proxy(log, {
    get(target, name) {
      if (name === 'append' && lose) {
        return async (...args: Parameters<EventLog['append']>) => {
          lose = false
          await target.append(...args)
          throw new Error('connection lost')
        }
      }
      const member = Reflect.get(target, name) as unknown
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}

describe('a command', () => {
  test('that loses a race is decided again on what the winner left behind', async () => {
    const id = randomUUID()
    const moves = Array.from({ length: 20 }, (_, index) => index + 1)
    await Promise.all(moves.map((to, index) => moveTo(index % 2 === 0 ? one : other, id, to)))
    const stored = await one.log.readStream(`virtualClock-${id}`)
    const times = stored.map(({ data }) => (JSON.parse(data) as { to: number }).to)
    expect(times).toEqual([...times].sort((a, b) => a - b))
    expect(times.at(-1)).toBe(20)
  })

  test('that comes with many others at once is carried out, however many they are', async () => {
    const primaryId = tenantId()
    const place = { tenant_id: tenantId(), environment: 'live', layer: 'ach_account' } as const
    const owner = { ...place, owner_type: 'employer', owner_id: tenantId() } as const
    const accounts = Array.from({ length: 60 }, tenantId)
    const choose = (accountId: string) => {
      const command = { type: 'Choose', primaryId, owner, accountId, isOfCreation: false, at: 0 } as const
      return one.commands.execute(primaryAccount, primaryId, command, operatorContext())
    }
    const outcomes = await Promise.all(accounts.map(choose))
    expect(outcomes.filter(isRejection)).toEqual([])
    const { state } = await other.commands.load(primaryAccount, primaryId)
    expect([...state.chosen].sort()).toEqual(accounts.sort())
  })

  test('of several is carried out whole or not at all', async () => {
    const id = tenantId()
    const twice = [register(id, 'Once'), register(id, 'Once')]
    const outcome = await one.commands.execute(tenant, id, twice, operatorContext())
    expect(outcome).toMatchObject({ code: 'tenant_exists' })
    expect(await eventsOf(id)).toEqual([])
  })

  test('sees what another process wrote just before', async () => {
    const id = tenantId()
    expect((await one.commands.load(tenant, id)).state).toBeNull()
    await other.commands.execute(tenant, id, register(id, 'A'), operatorContext())
    expect((await one.commands.load(tenant, id)).state).toMatchObject({ name: 'A' })
  })

  test('whose answer was lost is the same command when it is sent again', async () => {
    const id = tenantId()
    const commandId = randomUUID()
    const commands = new CommandHandler(losingOneAnswer(one.log), one.registry, one.clock)
    const execute = (context = operatorContext()) =>
      commands.execute(tenant, id, register(id, 'Once'), context)
    await expect(execute(operatorContext(commandId))).rejects.toThrow('connection lost')

    const again = await execute(operatorContext(commandId))
    expect(isRejection(again)).toBe(false)
    const [stored, ...more] = await eventsOf(id)
    expect(again).toMatchObject({ revision: 0, position: stored!.position, state: { name: 'Once' } })
    expect(more).toEqual([])
    expect(await execute()).toMatchObject({ code: 'tenant_exists' })
  })

  test('that is decided on a stale state is decided again: nobody is refused by it, and nothing is lost', async () => {
    const id = randomUUID()
    for (const process of [one, other]) {
      await moveTo(process, id, 1)
      await process.commands.load(virtualClock, id)
    }
    // decided on 1: a move to 5 meets the other's 3, and one to 2 is refused by it
    await moveTo(other, id, 3)
    expect(await moveTo(one, id, 5)).toMatchObject({
      revision: 2,
    })
    expect(await moveTo(other, id, 2)).toMatchObject({
      code: 'clock_moves_forward',
    })
    expect(await moveTo(other, id, 5)).toMatchObject({
      position: null,
      revision: 2,
    })
  })

  test('is decided on a cached state; what is cached is bounded by the size of the events', async () => {
    const commands = new CommandHandler(one.log, one.registry, one.clock, new AggregateCache(200_000))
    const registered = async (name: string) => {
      const id = tenantId()
      await commands.execute(tenant, id, register(id, name), operatorContext())
      return id
    }
    const small = await Promise.all(Array.from({ length: 20 }, () => registered('Small')))
    const reads = vi.spyOn(one.log, 'readStream')
    const readFor = async (ids: readonly string[]) => {
      reads.mockClear()
      for (const id of ids) await commands.load(tenant, id)
      return reads.mock.calls.length
    }
    expect(await readFor(small)).toBe(0)
    // as few as that push out all others
    for (let n = 0; n < 10; n += 1) await registered('x'.repeat(40_000))
    expect(await readFor(small)).toBe(20)
    expect(await readFor(small)).toBe(0)
    reads.mockRestore()
  })

  test('and whoever asks for what is not there read nothing, until somebody has created it', async () => {
    const id = tenantId()
    expect((await one.commands.load(tenant, id)).state).toBeNull()
    const reads = vi.spyOn(one.log, 'readStream')
    const loaded = await Promise.all(Array.from({ length: 20 }, () => one.commands.load(tenant, id)))
    expect(loaded).toMatchObject(Array(20).fill({ state: null, revision: -1 }))
    expect(reads).not.toHaveBeenCalled()
    reads.mockRestore()
    await other.commands.execute(tenant, id, register(id, 'Elsewhere'), operatorContext())
    expect((await one.commands.load(tenant, id)).state).toMatchObject({ name: 'Elsewhere' })
  })

  test('that is stored needs no look at the log', async () => {
    const id = randomUUID()
    await moveTo(one, id, 1)
    const looks = [vi.spyOn(one.log, 'changes'), vi.spyOn(one.log, 'readStream')]
    await moveTo(one, id, 2)
    const created = tenantId()
    await one.commands.create(tenant, created, register(created, 'New'), operatorContext())
    for (const look of looks) {
      expect(look).not.toHaveBeenCalled()
      look.mockRestore()
    }
  })

  test('that comes again is done, however many came after it', async () => {
    const id = randomUUID()
    const first = operatorContext()
    await moveTo(one, id, 1, first)
    const [stored] = await one.log.readStream(`virtualClock-${id}`)
    for (let to = 2; to <= 300; to += 1) {
      await moveTo(one, id, to)
    }
    const again = { type: 'MoveTo', to: 1_000 } as const
    for (const { commands } of [one, other]) {
      const outcome = await commands.execute(virtualClock, id, again, { ...first, mayRepeat: true })
      expect(outcome).toMatchObject({ events: [], position: stored!.position, state: { now: 300 } })
    }
    expect(await revisionOf(one.log, `virtualClock-${id}`)).toBe(299)
  })

  test('is one of several of a request, each with an id of its own', async () => {
    const id = randomUUID()
    const request = operatorContext()
    for (const [ordinal, to] of [1, 2, 2].entries()) {
      await moveTo(one, id, to, { ...request, ordinal: Math.min(ordinal, 1) })
    }
    const ids = (await one.log.readStream(`virtualClock-${id}`)).map(
      ({ metadata }) => (JSON.parse(metadata) as { command_id: string }).command_id,
    )
    expect(new Set(ids).size).toBe(2)
    expect(ids).not.toContain(request.commandId)
  })
})

describe('a request', () => {
  const now = async ({ commands }: Pick<Workbench, 'commands'>, id: string) =>
    (await commands.load(virtualClock, id)).state.now
  const request = (process: Workbench) => ({ commands: process.commands.asOfNow() })

  test('looks once at the log for all that is cached, and reads what others have changed', async () => {
    const ids = [randomUUID(), randomUUID(), randomUUID()]
    const sum = async (of: Pick<Workbench, 'commands'>) => {
      let total = 0
      for (const id of ids) total += (await now(of, id)) ?? 0
      return total
    }
    for (const id of ids) await moveTo(one, id, 1)
    await sum(one)
    const looks = vi.spyOn(one.log, 'changes')
    const reads = vi.spyOn(one.log, 'readStream')
    expect(await sum(request(one))).toBe(3)
    expect([looks.mock.calls.length, reads.mock.calls.length]).toEqual([1, 0])
    await moveTo(other, ids[1]!, 10)
    expect(await sum(request(one))).toBe(12)
    expect([looks.mock.calls.length, reads.mock.calls.length]).toEqual([2, 1])
    looks.mockRestore()
    reads.mockRestore()
  })

  test('that has seen what came of a change sees the change', async () => {
    const [cause, effect] = [randomUUID(), randomUUID()]
    await moveTo(one, cause, 1)
    const reading = request(one)
    expect(await now(reading, cause)).toBe(1)
    await moveTo(other, cause, 2)
    await moveTo(other, effect, 2)
    expect(await now(reading, effect)).toBe(2)
    expect(await now(reading, cause)).toBe(2)
  })

  test('hears nothing of a state that was read while another process changed it', async () => {
    const id = randomUUID()
    await moveTo(other, id, 1)
    const { opened: isRead, open: read } = gate()
    const { opened: mayGoOn, open: goOn } = gate()
    const readStream = one.log.readStream.bind(one.log)
    const slow = vi.spyOn(one.log, 'readStream').mockImplementationOnce(async (...asked) => {
      const events = await readStream(...asked)
      read()
      await mayGoOn
      return events
    })
    const before = now(request(one), id)
    await isRead
    await moveTo(other, id, 2)
    // another request learns of the change, and has nothing of it
    const learnt = randomUUID()
    await moveTo(one, learnt, 1)
    await now(one, learnt)
    goOn()
    expect(await before).toBe(1)
    slow.mockRestore()
    expect(await now(request(one), id)).toBe(2)
  })

  test('is refused only by what is so', async () => {
    const id = randomUUID()
    await moveTo(one, id, 5)
    await moveTo(other, id, 6)
    const moved = ({ commands }: Pick<Workbench, 'commands'>, to: number) =>
      commands.execute(virtualClock, id, { type: 'MoveTo', to }, operatorContext())
    expect(await moved(request(one), 4)).toMatchObject({ code: 'clock_moves_forward' })
    expect(await moved(request(one), 6)).toMatchObject({ events: [], state: { now: 6 } })
  })
})
