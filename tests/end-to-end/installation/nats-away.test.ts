// @module-tag once: it has a NATS server that comes and goes
// @module-tag long: integration/followers/nats-wake-up goes on without the server, nats-integration-events tells all once it is back
import { StringCodec } from 'nats'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Nats } from '../../../infrastructure/messaging/nats/connection.ts'
import { INTEGRATION_STREAM } from '../../../infrastructure/messaging/nats/integration-events.ts'
import { report, status } from '../../support/core.ts'
import { expectComplete, largePayroll } from '../../support/large-payroll.ts'
import { createInstallation, type Installation } from '../../support/many-processes.ts'
import { type NatsServer, natsCanBeKilled, startNats } from '../../support/nats.ts'
import { operate, type SeededTenant, seedTenant, send } from '../../support/seed.ts'
import type { RunningService } from '../../support/service.ts'
import { deadlinesOfTheProduct } from '../../support/technical-deadlines.ts'
import { until } from '../../support/workbench.ts'

deadlinesOfTheProduct()

const ALL = 'api,projector,worker'
const NOWHERE = 'nats://127.0.0.1:1'

let server: NatsServer
let installation: Installation
let service: RunningService
let tenant: SeededTenant

if (natsCanBeKilled) {
  beforeAll(async () => {
    server = await startNats()
    installation = await createInstallation({ natsUrl: server.url })
  })
  afterAll(async () => {
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

/** That processes go on without it, and say so. */
async function expectDegraded(...processes: readonly RunningService[]): Promise<void> {
  for (const process of processes) {
    await until(async () => (await readyz(process)).nats === 'unreachable')
    expect(await readyz(process)).toMatchObject({
      status: 200,
      nats: 'unreachable',
      degraded: expect.arrayContaining([expect.stringMatching(/^nats: unreachable/)]),
    })
    expect((await send(`${process.opsUrl}/metrics`)).text).toContain('compstream_nats_connected 0\n')
  }
  const answer = await report(processes[0]!, tenant)
  expect((await status(processes[0]!, tenant, answer.body.file_id)).body.status).toBe('NORMALIZED')
}

/** That everything is told, also of a file that came while nobody could be. */
async function expectWhole(fileId: string, ...processes: readonly RunningService[]): Promise<void> {
  for (const process of processes) {
    await until(async () => (await readyz(process)).nats === 'ok')
    await until(async () => (await readyz(process)).degraded.length === 0)
    expect((await send(`${process.opsUrl}/metrics`)).text).toContain('compstream_nats_connected 1\n')
  }
  // and of what happens in other processes
  const next = await report(processes.at(-1)!, tenant)
  await operate(processes[0]!, 'POST', '/drain')
  for (const id of [fileId, next.body.file_id]) {
    expect(await toldOf(id)).toEqual(['payroll.file_received', 'payroll.file_completed'])
  }
}

describe.skipIf(!natsCanBeKilled)('NATS that is away', () => {
  test('at the start is refused in one line while this database has never known it', async () => {
    const refused = installation.start(ALL, { NATS_URL: NOWHERE })
    await expect(refused).rejects.toThrow('ended with code 1:\nNATS at 127.0.0.1:1: connection refused')
  })

  test('is gone without: who runs and who starts then says so, and is whole again when it is back', async () => {
    service = await installation.start(ALL)
    tenant = await seedTenant(service)
    await server.own!.kill()
    const reader = await installation.start('api')
    await expectDegraded(service, reader)
    const payroll = largePayroll(1_200, 1)
    const { body } = await report(service, tenant, { employees: payroll.employees })
    await expectComplete(reader, tenant, body.report_id, payroll)

    await server.own!.restart()
    await expectWhole(body.report_id, service, reader)
    await reader.end()
    expect(await service.end()).toBe(0)
  })

  test('at the start of all processes is gone without where it was known', async () => {
    await server.own!.kill()
    service = await installation.start(ALL)
    await expectDegraded(service)
    const { body } = await report(service, tenant)
    await server.own!.restart()
    await expectWhole(body.file_id, service)
  })

  test('does not hold up a stop', async () => {
    await server.own!.kill()
    await until(async () => (await readyz(service)).nats === 'unreachable')
    expect(await service.end()).toBe(0)
    const started = await installation.start(ALL)
    expect(await started.end()).toBe(0)
    await server.own!.restart()
  })

  test('is refused where another one was known', async () => {
    await (await installation.start(ALL, { NATS_URL: `${server.url},${NOWHERE}` })).end()
    await expect(installation.start(ALL, { NATS_URL: NOWHERE })).rejects.toThrow('NATS at 127.0.0.1:1: ')
  })
})

if (!natsCanBeKilled) test.skip('a NATS server that can be killed is needed', () => undefined)
