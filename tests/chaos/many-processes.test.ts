import { randomInt } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { connect, type JetStreamManager, StringCodec } from 'nats'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { INTEGRATION_STREAM } from '../../infrastructure/messaging/nats/integration-events.ts'
import { allEvents, report, type ShownEvent, status } from '../support/core.ts'
import { expectComplete, type LargePayroll, largePayroll } from '../support/large-payroll.ts'
import { createInstallation, type Installation } from '../support/many-processes.ts'
import { type NatsServer, natsCanBeKilled, startNats } from '../support/nats.ts'
import { type Answer, operate, type SeededTenant, seedTenant, send } from '../support/seed.ts'
import type { RunningService } from '../support/service.ts'
import { until } from '../support/workbench.ts'

/** How long it goes on; CHAOS_SECONDS=600 for the long run. */
const SECONDS = Number(process.env.CHAOS_SECONDS ?? 20)
const ROLES = ['api', 'api', 'projector', 'projector', 'worker', 'worker'] as const
const LARGE_ROWS = 1_500
const RETRY_MS = 50

describe.skipIf(!natsCanBeKilled)('many processes and NATS, killed at random under load', () => {
  let nats: NatsServer
  let installation: Installation
  /** By place in ROLES; null while it is being replaced. */
  const processes: (RunningService | null)[] = ROLES.map(() => null)
  let tenant: SeededTenant

  beforeAll(async () => {
    nats = await startNats()
    installation = await createInstallation({ natsUrl: nats.url })
    for (const [place, roles] of ROLES.entries()) processes[place] = await installation.start(roles)
    tenant = await seedTenant(processes[0]!)
  }, 120_000)
  afterAll(async () => {
    await installation?.stop()
    await nats?.stop()
  })

  const small = new Map<string, string>()
  const large = new Map<string, LargePayroll>()
  let over = false

  const anyApi = () => processes.slice(0, 2).filter((each) => each !== null)[randomInt(2)] ?? null

  /** Sends a report under one key until it is answered. @returns the id of its file. */
  async function insist(key: string, employees?: LargePayroll['employees']): Promise<string> {
    for (;;) {
      const api = anyApi()
      const overrides = employees ? { employees } : {}
      const answer: Answer | null = api
        ? await report(api, tenant, overrides, { 'Idempotency-Key': key }).catch(() => null)
        : null
      if (answer?.status === 202) return answer.body.file_id ?? answer.body.report_id
      // a key whose first request is still under way is 409 for a moment
      if (answer && ![409, 500, 503].includes(answer.status)) throw new Error(`${key}: ${answer.text}`)
      await delay(RETRY_MS)
    }
  }

  async function client(name: number): Promise<void> {
    for (let n = 0; !over; n += 1) small.set(`small-${name}-${n}`, await insist(`small-${name}-${n}`))
  }

  async function largeClient(): Promise<void> {
    for (let n = 0; !over; n += 1) {
      const payroll = largePayroll(LARGE_ROWS, n)
      large.set(await insist(`large-${n}`, payroll.employees), payroll)
    }
  }

  async function killer(): Promise<Record<string, number>> {
    const kills: Record<string, number> = {}
    const end = performance.now() + SECONDS * 1000
    for (let n = 1; performance.now() < end; n += 1) {
      await delay(randomInt(300, 1_500))
      const victim = randomInt(ROLES.length)
      const what = n % 3 === 0 ? 'nats' : ROLES[victim]!
      kills[what] = (kills[what] ?? 0) + 1
      if (what === 'nats') {
        await nats.own!.kill()
        await delay(randomInt(100, 1_500))
        await nats.own!.restart()
        continue
      }
      const dead = processes[victim]!
      processes[victim] = null
      await dead.kill()
      processes[victim] = await installation.start(what)
    }
    over = true
    return kills
  }

  test(
    `nothing is lost, nothing is doubled, every file is complete`,
    async () => {
      const [kills] = await Promise.all([killer(), client(1), client(2), client(3), largeClient()])
      const api = processes[0]!
      await operate(api, 'POST', '/drain', { timeout_seconds: 120 })

      const received = await allEvents(api, 'PayrollFileReceived')
      const files = [...small.values(), ...large.keys()].sort()
      expect(received.map(fileOf).sort()).toEqual(files)
      expect(new Set(files).size).toBe(small.size + large.size)
      const completed = (await allEvents(api, 'PayrollPremiumCalculated')).filter(
        ({ data }) => data.last === true,
      )
      expect(completed.map(fileOf).sort()).toEqual(files)
      for (const id of small.values()) {
        expect((await status(processes[1]!, tenant, id)).body.status).toBe('NORMALIZED')
      }
      for (const [id, payroll] of large) await expectComplete(api, tenant, id, payroll)
      expect((await operate(api, 'GET', '/work')).counts).toMatchObject({ due: 0, leased: 0, failed: 0 })
      expect(await operate(api, 'POST', '/audit/verify')).toMatchObject({ verified: true })

      const told = await integrationEvents()
      for (const type of ['payroll.file_received', 'payroll.file_completed']) {
        expect(
          told
            .filter((each) => each.type === type)
            .map(({ data }) => data.file_id)
            .sort(),
          type,
        ).toEqual(files)
      }
      process.stderr.write(
        `chaos: ${SECONDS} s, kill -9 of ${JSON.stringify(kills)}; ${small.size} small and ${large.size} large files\n`,
      )
    },
    (SECONDS + 240) * 1000,
  )

  /** What the stream holds when publishing has come to the end, each message id once. */
  async function integrationEvents(): Promise<{ type: string; data: Record<string, unknown> }[]> {
    const worker = processes[ROLES.indexOf('worker')]!
    await until(
      async () =>
        /^compstream_integration_events_behind 0$/m.test((await send(`${worker.opsUrl}/metrics`)).text),
      60_000,
    )
    const connection = await connect({ servers: nats.url })
    const manager: JetStreamManager = await connection.jetstreamManager()
    const { state } = await manager.streams.info(INTEGRATION_STREAM)
    const byId = new Map<string, { type: string; data: Record<string, unknown> }>()
    for (let seq = state.first_seq; seq <= state.last_seq; seq += 1) {
      const { header, data } = await manager.streams.getMessage(INTEGRATION_STREAM, { seq })
      byId.set(header.get('Nats-Msg-Id'), JSON.parse(StringCodec().decode(data)))
    }
    await connection.close()
    return [...byId.values()]
  }
})

const fileOf = ({ data }: ShownEvent) => String(data.file_id)
