import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type CommandContext, CommandHandler } from '../../application/command-handling/command-handler.ts'
import type { EventLog } from '../../application/ports/event-log.ts'
import { isRejection } from '../../domain/kernel/rejection.ts'
import { virtualClock } from '../../domain/operations/virtual-clock.ts'
import { tenant } from '../../domain/parties/tenant.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { openWorkbench, type Workbench } from '../support/workbench.ts'

let database: TestDatabase
let one: Workbench
let other: Workbench

beforeAll(async () => {
  database = await createTestDatabase()
  one = await openWorkbench(database.url)
  // a second process on the same log: from here on nobody is the sole writer
  other = await openWorkbench(database.url)
})
afterAll(async () => {
  await one?.close()
  await other?.close()
  await database?.drop()
})

const context = (commandId = randomUUID()): CommandContext => ({
  actor: { type: 'operator', id: 'operator' },
  tenantId: null,
  environment: null,
  correlationId: 'test',
  commandId,
})
const tenantId = () => randomUUID().replaceAll('-', '').slice(0, 24)
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
    await Promise.all(
      moves.map((to, index) =>
        (index % 2 === 0 ? one : other).commands.execute(virtualClock, id, { type: 'MoveTo', to }, context()),
      ),
    )
    const stored = await one.log.readStream(`virtualClock-${id}`)
    const times = stored.map(({ data }) => (JSON.parse(data) as { to: number }).to)
    expect(times).toEqual([...times].sort((a, b) => a - b))
    expect(times.at(-1)).toBe(20)
  })

  test('of several is carried out whole or not at all', async () => {
    const id = tenantId()
    const register = { type: 'Register', data: { tenant_id: id, name: 'Once' } } as const
    const outcome = await one.commands.execute(tenant, id, [register, register], context())
    expect(outcome).toMatchObject({ code: 'tenant_exists' })
    expect(await eventsOf(id)).toEqual([])
  })

  test('sees what another process wrote just before', async () => {
    const id = tenantId()
    expect((await one.commands.load(tenant, id)).state).toBeNull()
    await other.commands.execute(
      tenant,
      id,
      { type: 'Register', data: { tenant_id: id, name: 'A' } },
      context(),
    )
    expect((await one.commands.load(tenant, id)).state).toMatchObject({ name: 'A' })
  })

  test('whose answer was lost is the same command when it is sent again', async () => {
    const id = tenantId()
    const commandId = randomUUID()
    const commands = new CommandHandler(losingOneAnswer(one.log), one.registry, one.clock)
    const register = { type: 'Register', data: { tenant_id: id, name: 'Once' } } as const
    await expect(commands.execute(tenant, id, register, context(commandId))).rejects.toThrow(
      'connection lost',
    )

    const again = await commands.execute(tenant, id, register, context(commandId))
    expect(isRejection(again)).toBe(false)
    const [stored, ...more] = await eventsOf(id)
    expect(again).toMatchObject({ revision: 0, position: stored!.position })
    expect(more).toEqual([])
    expect(await commands.execute(tenant, id, register, context())).toMatchObject({ code: 'tenant_exists' })
  })
})
