// @module-tag once: it has a NATS server that comes and goes
import { StringCodec } from 'nats'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Nats } from '../../infrastructure/messaging/nats/connection.ts'
import { INTEGRATION_STREAM } from '../../infrastructure/messaging/nats/integration-events.ts'
import { report } from '../support/core.ts'
import { expectComplete, largePayroll } from '../support/large-payroll.ts'
import { createInstallation, type Installation } from '../support/many-processes.ts'
import { type NatsServer, natsCanBeKilled, startNats } from '../support/nats.ts'
import { operate, seedTenant, send } from '../support/seed.ts'
import type { RunningService } from '../support/service.ts'
import { deadlinesOfTheProduct } from '../support/technical-deadlines.ts'
import { until } from '../support/workbench.ts'

deadlinesOfTheProduct()

const ALL = 'api,projector,worker'
const NOWHERE = 'nats://127.0.0.1:1'

let server: NatsServer
let installation: Installation

if (natsCanBeKilled) {
  beforeEach(async () => {
    server = await startNats()
    installation = await createInstallation({ natsUrl: server.url })
  })
  afterEach(async () => {
    await installation?.stop()
    await server?.stop()
  })
}

const readyz = async ({ opsUrl }: RunningService) => {
  const { status, body } = await send(`${opsUrl}/readyz`)
  return { status, degraded: body.degraded as string[], nats: body.checks.nats as string }
}

/** Words of what was published about a file. */
async function toldOf(fileId: string): Promise<string[]> {
  const nats = await Nats.open([server.url], { info: () => undefined, warn: () => undefined })
  try {
    const manager = await nats.connection.jetstreamManager()
    const { state } = await manager.streams.info(INTEGRATION_STREAM)
    const words: string[] = []
    for (let seq = state.first_seq; seq <= state.last_seq; seq += 1) {
      const { data } = await manager.streams.getMessage(INTEGRATION_STREAM, { seq })
      const body = JSON.parse(StringCodec().decode(data))
      if (body.data.file_id === fileId) words.push(body.type)
    }
    return words
  } finally {
    await nats.close()
  }
}

describe.skipIf(!natsCanBeKilled)('a start while NATS is away', () => {
  test('is refused in one line while this database has never known it', async () => {
    const refused = installation.start(ALL, { NATS_URL: NOWHERE })
    await expect(refused).rejects.toThrow('ended with code 1:\nNATS at 127.0.0.1:1: connection refused')
  })

  // the test before it, with another list
  test('is refused where it was known, and another one is named', { tags: 'long' }, async () => {
    // having known one server says nothing about another, not even of the same list
    const service = await installation.start(ALL, { NATS_URL: `${server.url},${NOWHERE}` })
    await service.end()
    await expect(installation.start(ALL, { NATS_URL: NOWHERE })).rejects.toThrow('NATS at 127.0.0.1:1: ')
  })

  test('works degraded where it was known, and as always when it is back', async () => {
    const first = await installation.start(ALL)
    const tenant = await seedTenant(first)
    expect(await first.end()).toBe(0)
    await server.own!.kill()

    const service = await installation.start(ALL)
    const reader = await installation.start('api')
    for (const process of [service, reader]) {
      expect(await readyz(process)).toMatchObject({
        status: 200,
        nats: 'unreachable',
        degraded: expect.arrayContaining([expect.stringMatching(/^nats: unreachable/)]),
      })
      expect((await send(`${process.opsUrl}/metrics`)).text).toContain('compstream_nats_connected 0\n')
    }
    const payroll = largePayroll(1_200, 1)
    const { body } = await report(service, tenant, { employees: payroll.employees })
    await expectComplete(reader, tenant, body.report_id, payroll)
    await operate(service, 'POST', '/drain')

    await server.own!.restart()
    await until(async () => (await readyz(service)).nats === 'ok' && (await readyz(reader)).nats === 'ok')
    await until(async () => (await readyz(service)).degraded.length === 0)
    await operate(service, 'POST', '/drain')
    expect(await toldOf(body.report_id)).toEqual(['payroll.file_received', 'payroll.file_completed'])
    // and it hears of what happens in other processes
    const next = await report(reader, tenant)
    await operate(service, 'POST', '/drain')
    expect(await toldOf(next.body.file_id)).toEqual(['payroll.file_received', 'payroll.file_completed'])
    expect(await service.end()).toBe(0)
  })

  // integration/nats-integration-events drains while it is away
  test('can be stopped while it is still away', { tags: 'long' }, async () => {
    await (await installation.start(ALL)).end()
    await server.own!.kill()
    const service = await installation.start(ALL)
    expect(await service.end()).toBe(0)
    await server.own!.restart()
  })
})

if (!natsCanBeKilled) test.skip('a NATS server that can be killed is needed', () => undefined)
