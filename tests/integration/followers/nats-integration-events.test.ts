import { randomUUID } from 'node:crypto'
import { type JetStreamManager, StringCodec } from 'nats'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { EventRegistry } from '../../../application/commands/event-registry.ts'
import {
  INTEGRATION_EVENTS,
  INTEGRATION_SOURCES,
  type IntegrationEventWord,
} from '../../../application/followers/integration-messages.ts'
import {
  IntegrationPublisher,
  type PublisherParts,
} from '../../../application/followers/integration-publisher.ts'
import { drain } from '../../../application/operations/drain.ts'
import { phaseTerms } from '../../../application/payroll/pipeline-steps.ts'
import {
  type IntegrationEvent,
  type IntegrationEventChannel,
  IntegrationEventRefused,
} from '../../../application/ports/integration-events.ts'
import { aggregates } from '../../../domain/catalogue.ts'
import { environment, id } from '../../../domain/kernel/ids.ts'
import { employer } from '../../../domain/parties/employer.ts'
import { payrollFile } from '../../../domain/payroll/payroll-file.ts'
import {
  type PayrollFileEvent,
  PayrollFileFailed,
  PayrollFileNormalized,
  PayrollPremiumCalculated,
  PayrollRowsValidated,
  PayrollWagesCalculated,
} from '../../../domain/payroll/payroll-file-events.ts'
import { policy } from '../../../domain/policies/policy.ts'
import { Nats } from '../../../infrastructure/messaging/nats/connection.ts'
import {
  INTEGRATION_STREAM,
  JetStreamIntegrationEvents,
} from '../../../infrastructure/messaging/nats/integration-events.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { appendForeign, canStoreGarbage } from '../../support/foreign-client.ts'
import { gate } from '../../support/gate.ts'
import { EVENT_METADATA } from '../../support/log.ts'
import { type NatsServer, natsCanBeKilled, natsSource, startNats } from '../../support/nats.ts'
import { newId, policyTerms, received, recorded, row } from '../../support/payroll.ts'
import { operatorContext } from '../../support/registrations.ts'
import { deadlinesOfTheProduct } from '../../support/technical-deadlines.ts'
import { openWorkbench, until, type Workbench } from '../../support/workbench.ts'

deadlinesOfTheProduct()

/** The message around `data`. */
const integrationMessage = z.strictObject({
  /** Id of the event in the log, and of the message: handle each once. */
  id: z.string(),
  type: z.enum(Object.keys(INTEGRATION_EVENTS) as [IntegrationEventWord, ...IntegrationEventWord[]]),
  /** Grows when the meaning of a field changes. */
  version: z.literal(1),
  /** Place in the log, a decimal string; puts messages in order. */
  position: z.string(),
  /** ISO 8601 UTC, by the service's clock. */
  occurred_at: z.string(),
  environment: environment(),
  tenant_id: id(),
  correlation_id: z.string(),
  data: z.record(z.string(), z.unknown()),
})

interface Message {
  readonly subject: string
  readonly id: string
  readonly body: {
    readonly id: string
    readonly type: IntegrationEventWord
    readonly position: string
    readonly data: Record<string, unknown>
  }
}

const SILENT = { info: () => undefined, warn: () => undefined }

let server: NatsServer
let testDatabase: TestDatabase
let bench: Workbench
let nats: Nats
let tenantId: string
const running: IntegrationPublisher[] = []
const more: Workbench[] = []

if (natsSource !== null) {
  beforeAll(async () => {
    server = await startNats()
    nats = await Nats.open([server.url], SILENT)
  })
  afterAll(async () => {
    await nats?.close()
    await server?.stop()
  })
  beforeEach(async () => {
    testDatabase = await createTestDatabase()
    bench = await openWorkbench(testDatabase.url)
    tenantId = newId()
  })
  afterEach(async () => {
    await Promise.all(running.splice(0).map((each) => each.stop()))
    await Promise.all([bench, ...more.splice(0)].map((each) => each.close()))
    await testDatabase.drop()
  })
}

const context = () => ({ ...operatorContext(), tenantId, environment: 'live' as const })

/** Counts what is handed to the real channel. */
class Counted implements IntegrationEventChannel {
  readonly published: IntegrationEvent[] = []
  readonly #real = new JetStreamIntegrationEvents(nats)
  exists = () => this.#real.exists()
  create = () => this.#real.create()
  isAvailable = () => this.#real.isAvailable()
  available = (signal: AbortSignal) => this.#real.available(signal)
  onLost = (listener: () => void) => this.#real.onLost(listener)
  /** Publishing waits for it. */
  gate: Promise<void> = Promise.resolve()
  /** Types that the channel never takes. */
  readonly refused = new Set<string>()
  async publish(event: IntegrationEvent): Promise<void> {
    await this.gate
    if (this.refused.has(event.type)) throw new IntegrationEventRefused(event, 'too large')
    this.published.push(event)
    await this.#real.publish(event)
  }
}

function publishFrom(
  on: Workbench = bench,
  parts: Partial<PublisherParts> = {},
): Counted & { events: IntegrationPublisher } {
  const channel = new Counted()
  const { log, registry, commands, leases, store, reports } = on
  const report = (what: string, { reason }: Readonly<Record<string, string>>) =>
    void reports.push(`${what} ${reason}`)
  const events = new IntegrationPublisher({
    log,
    registry,
    commands,
    leases,
    store,
    channel,
    report,
    ...parts,
  })
  events.start()
  running.push(events)
  return Object.assign(channel, { events })
}

async function stopped(): Promise<void> {
  await Promise.all(running.splice(0).map((each) => each.stop()))
}

/** Waits until everything in the log is published. */
async function allPublished(): Promise<void> {
  const events = new IntegrationPublisher({ ...bench, channel: new Counted(), report: () => undefined })
  const head = await bench.log.head()
  await until(async () => (await events.status()).position >= head)
}

/** What the stream holds of this test's tenant, in order. */
async function stored(): Promise<Message[]> {
  const manager: JetStreamManager = await nats.connection.jetstreamManager()
  const { state } = await manager.streams.info(INTEGRATION_STREAM)
  const messages: Message[] = []
  for (let seq = state.first_seq; seq <= state.last_seq; seq += 1) {
    const message = await manager.streams.getMessage(INTEGRATION_STREAM, { seq }).catch(() => null)
    if (!message?.subject.split('.').includes(tenantId)) continue
    const body = JSON.parse(StringCodec().decode(message.data))
    messages.push({ subject: message.subject, id: message.header.get('Nats-Msg-Id'), body })
  }
  return messages
}

async function failedWork() {
  const { rows } = await bench.database.pool.query<Record<'key' | 'last_error', string>>(
    `SELECT process_manager, kind, key, last_error FROM runtime.work WHERE state = 'failed'`,
  )
  return rows
}

/** A process that is not alone on the log. */
async function another(): Promise<Workbench> {
  const other = await openWorkbench(testDatabase.url)
  more.push(other)
  return other
}

async function registerEmployer(employer_id: string): Promise<void> {
  const fein = 'sld1.employer/1.AAAA' as never
  const about = { tenant_id: tenantId, environment: 'live', legal_name: 'Baker LLC' } as const
  const data = { ...about, employer_id, fein, address: fein, contact_email: fein, payroll_company_ids: [] }
  await bench.commands.execute(employer, employer_id, { type: 'Register', data }, context())
}

const words = (messages: readonly Message[]) => messages.map(({ body }) => body.type)

async function issuePolicy() {
  const data = { ...policyTerms(), tenant_id: tenantId }
  await bench.commands.execute(policy, data.policy_id, { type: 'Issue', data }, context())
  return data
}

async function changeFrequency(policyId: string, payroll_frequency: 'MONTHLY' | 'WEEKLY'): Promise<void> {
  const command = { type: 'ChangeTerms', terms: { payroll_frequency } } as const
  await bench.commands.execute(policy, policyId, command, context())
}
async function cancel(policyId: string, reason: string): Promise<void> {
  await bench.commands.execute(policy, policyId, { type: 'Cancel', reason }, context())
}

/** Of the events of a dead-lettered stream that are read at once. */
const MORE_THAN_A_PAGE = 101
const twoRows = [row({}, 1), row({ class_code: '9999' }, 2)]

/** A file of one chunk, from its receipt to its end. */
async function processFile(on: Awaited<ReturnType<typeof issuePolicy>>, isGood = true): Promise<string> {
  const file_id = newId()
  const one = { file_id, chunk: 0, last: true }
  const start: PayrollFileEvent[] = [
    received(file_id, { rows: 2, chunks: 1 }, on),
    recorded(file_id, 0, true, twoRows),
    PayrollFileNormalized.of({ file_id, row_count: 2, policy_revision: 0 }),
    PayrollRowsValidated.of({ ...one, green: 1, red: 1, failures: [{ row_number: 2, reasons: [] }] }),
    PayrollWagesCalculated.of({
      ...one,
      rows_processed: 1,
      auditable_cents: 100_000,
      wages: [[1, 100_000, '8810', 'CA']],
    }),
  ]
  const end: PayrollFileEvent = isGood
    ? PayrollPremiumCalculated.of({ ...one, rows_processed: 1, premium_cents: 250, premiums: [[1, 250]] })
    : PayrollFileFailed.of({ file_id, stage: 'premium_calculation', error: 'no rate' })
  const nothing = { state: payrollFile.initialState, revision: -1 }
  await bench.commands.appendAt(payrollFile, file_id, nothing, [...start, end], context())
  return file_id
}

/** What a good one comes to. */
function completedOf({ employer_id, policy_id, policy_number }: Awaited<ReturnType<typeof issuePolicy>>) {
  const rows = { row_count: 2, green_rows: 1, red_rows: 1 }
  const cents = { auditable_cents: 100_000, premium_cents: 250 }
  return { employer_id, policy_id, policy_number, ...rows, ...cents, period: null }
}

/** A file that is processed when it is received. */
async function processAtOnce(on: Awaited<ReturnType<typeof issuePolicy>>, isRated = true): Promise<string> {
  const file_id = newId()
  const { data } = received(file_id, { rows: 2, chunks: 1 }, on)
  const policyNow = { ...on, rates: isRated ? on.rates : on.rates.filter(({ state }) => state !== 'CA') }
  const whole = { data, rows: twoRows, policyRevision: 0, debitAccountId: null, ...phaseTerms(policyNow) }
  await bench.commands.execute(payrollFile, file_id, { type: 'ReceiveAndProcess', ...whole }, context())
  return file_id
}

describe.skipIf(natsSource === null)('integration events over NATS', () => {
  test('tell what happened, once, in the order of each stream, under the id of the event', async () => {
    publishFrom()
    const terms = await issuePolicy()
    const { policy_id, employer_id, carrier_id, policy_number } = terms
    const fileId = await processFile(terms)
    const failed = await processFile(terms, false)
    await changeFrequency(policy_id, 'MONTHLY')
    await cancel(policy_id, 'said by Ada Baker')
    await allPublished()
    const messages = await stored()
    const of = (type: IntegrationEventWord) => messages.filter(({ body }) => body.type === type)
    expect(of('policy.issued').map(({ body }) => body.data)).toEqual([
      {
        policy_id,
        employer_id,
        carrier_id,
        policy_number,
        status: 'active',
        effective_date: '2026-01-01',
        expiration_date: '2026-12-31',
      },
    ])
    expect(of('policy.changed').map(({ body }) => body.data)).toEqual([
      { policy_id, employer_id, changed: ['payroll_frequency'] },
    ])
    expect(of('policy.cancelled').map(({ body }) => body.data)).toEqual([{ policy_id, employer_id }])
    expect(of('payroll.file_received').map(({ body }) => body.data.file_id)).toEqual([fileId, failed])
    expect(of('payroll.file_completed').map(({ body }) => body.data)).toEqual([
      { file_id: fileId, ...completedOf(terms) },
    ])
    expect(of('payroll.file_failed').map(({ body }) => body.data)).toEqual([
      { file_id: failed, employer_id, policy_id, stage: 'premium_calculation', error: 'no rate' },
    ])
    const inLog = (await bench.log.readAll({ after: 0n, maxCount: 1000, types: INTEGRATION_SOURCES })).events
    for (const message of messages) {
      expect(message.subject).toBe(`compstream.live.${tenantId}.${message.body.type}`)
      expect(message.id).toBe(message.body.id)
      expect(integrationMessage.parse(message.body)).toEqual(message.body)
      const event = inLog.find(({ eventId }) => eventId === message.id)!
      expect(message.body.position).toBe(String(event.position))
      expect(JSON.stringify(message)).not.toContain('Ada Baker')
    }
    expect(new Set(messages.map(({ id }) => id)).size).toBe(messages.length)
    expect(messages).toHaveLength(inLog.length)
    for (const stream of new Set(inLog.map((event) => event.stream))) {
      const ids = inLog.filter((event) => event.stream === stream).map(({ eventId }) => eventId)
      expect(messages.map(({ id }) => id).filter((id) => ids.includes(id))).toEqual(ids)
    }
  })

  test('an event that is published again after the stream was purged is stored', async () => {
    const channel = new JetStreamIntegrationEvents(nats)
    if (!(await channel.exists())) await channel.create()
    const manager = await nats.connection.jetstreamManager()
    const event = {
      id: randomUUID(),
      type: 'policy.changed',
      environment: 'live',
      tenantId,
      text: '{"type":"policy.changed"}',
    } as const
    for (const purged of [1, 2]) {
      for (let time = 0; time < 2; time += 1) await channel.publish(event)
      expect(words(await stored()), `purged ${purged} times`).toEqual(['policy.changed'])
      await manager.streams.purge(INTEGRATION_STREAM)
    }
    await channel.publish(event)
    const { state } = await manager.streams.info(INTEGRATION_STREAM)
    await channel.publish({ ...event, id: randomUUID() })
    await manager.streams.deleteMessage(INTEGRATION_STREAM, state.last_seq)
    await channel.publish(event)
    expect(words(await stored())).toHaveLength(2)
  })

  test('tell the same of a file that is processed when it is received', async () => {
    publishFrom()
    const terms = await issuePolicy()
    const told = async (fileId: string) => {
      await allPublished()
      const messages = (await stored()).filter(({ body }) => body.data.file_id === fileId)
      const inLog = await bench.log.readStream(`payrollFile-${fileId}`)
      const ids = inLog.map(({ eventId }) => eventId)
      for (const { id } of messages) expect(ids).toContain(id)
      expect(new Set(messages.map(({ id }) => id)).size).toBe(messages.length)
      return messages.map(({ body: { type, data } }) => [type, { ...data, file_id: null }])
    }
    const atOnce = await told(await processAtOnce(terms))
    expect(atOnce).toHaveLength(2)
    expect(atOnce).toEqual(await told(await processFile(terms)))

    const [first, failed, ...more] = await told(await processAtOnce(terms, false))
    expect(more).toEqual([])
    expect(first).toEqual(atOnce[0])
    const { employer_id, policy_id } = terms
    const error = 'The policy has no rate for class code 8810 in CA (row 1)'
    expect(failed).toEqual([
      'payroll.file_failed',
      { file_id: null, employer_id, policy_id, stage: 'premium_calculation', error },
    ])
  })

  test('a file that says itself what it came to is announced without being read', async () => {
    const channel = publishFrom()
    const terms = await issuePolicy()
    const completed = completedOf(terms)
    const event = PayrollPremiumCalculated.of({
      file_id: newId(),
      chunk: 0,
      last: true,
      rows_processed: 1,
      premium_cents: 250,
      premiums: [[1, 250]],
      completed,
    })
    const nothing = { state: payrollFile.initialState, revision: -1 }
    await bench.commands.appendAt(payrollFile, event.data.file_id, nothing, [event], context())
    await until(() => channel.published.length === 2)
    const { data } = JSON.parse(channel.published[1]!.text) as { data: unknown }
    expect(data).toEqual({ file_id: event.data.file_id, ...completed })
  })

  test('are waited for by a drain', async () => {
    const runner = await bench.run([])
    const channel = publishFrom()
    const taking = gate()
    channel.gate = taking.opened
    const parts = { ...bench.drainParts(runner), integrationEvents: channel.events }
    await issuePolicy()
    expect(await drain(parts, 300)).toBe(false)
    const drained = drain(parts, 240_000)
    taking.open()
    expect(await drained).toBe(true)
    expect(channel.published).toHaveLength(1)
    // what is of no concern outside leaves nothing to wait for
    await bench.log.append('other-1', -1, [
      { type: 'NobodyKnowsIt', data: '{}', metadata: '{"schema_version":1}' },
    ])
    expect(await channel.events.hasPublished(await bench.log.head())).toBe(true)
  })

  test('hold no sealed value', async () => {
    publishFrom()
    const employerId = newId()
    await registerEmployer(employerId)
    await allPublished()
    const [message] = await stored()
    expect(message!.body).toMatchObject({
      type: 'employer.registered',
      data: { employer_id: employerId, payroll_company_ids: [] },
    })
    expect(JSON.stringify(message)).not.toMatch(/sld1|Baker/)
  })

  test('what belongs to no tenant is not told', async () => {
    const channel = publishFrom()
    const data = { ...policyTerms(), tenant_id: tenantId }
    await bench.commands.execute(policy, data.policy_id, { type: 'Issue', data }, operatorContext())
    await issuePolicy()
    await allPublished()
    expect(channel.published.map(({ type }) => type)).toEqual(['policy.issued'])
  })

  test('go on from the checkpoint after a restart and publish nothing again', async () => {
    const first = publishFrom()
    await issuePolicy()
    await allPublished()
    await stopped()
    await issuePolicy()
    const second = publishFrom()
    await allPublished()
    expect([first.published.length, second.published.length]).toEqual([1, 1])
    expect(words(await stored())).toEqual(['policy.issued', 'policy.issued'])
  })

  test('published twice they are one message each', async () => {
    publishFrom()
    const terms = await issuePolicy()
    await processFile(terms)
    await allPublished()
    const before = await stored()
    await stopped()
    // as after a crash before the checkpoint was stored, only worse
    await bench.database.pool.query(`UPDATE runtime.process_managers SET position = 0 WHERE name = $1`, [
      'integration-events',
    ])
    const again = publishFrom()
    await allPublished()
    expect(again.published.map(({ id }) => id).sort()).toEqual(before.map(({ id }) => id).sort())
    expect(await stored()).toEqual(before)
  })

  test('an owner that was replaced while it slept moves no checkpoint', async () => {
    const asleep = publishFrom()
    await issuePolicy()
    await allPublished()
    // somebody else takes over under a higher epoch, and the first one does not know
    const { rows } = await bench.database.pool.query<{ epoch: string; position: string }>(
      `UPDATE runtime.process_managers SET epoch = epoch + 1, position = position
       WHERE name = 'integration-events' RETURNING epoch, position`,
    )
    await issuePolicy()
    await until(() => bench.reports.some((line) => line.startsWith('integration_events_interrupted')))
    const stands = await bench.store.checkpoints(['integration-events'])
    expect(stands.get('integration-events')).toMatchObject({
      epoch: Number(rows[0]!.epoch),
      position: BigInt(rows[0]!.position),
    })
    expect(asleep.published.length).toBeGreaterThan(1)
    // published by the old owner already; for those who count ids it is one
    expect(new Set((await stored()).map(({ id }) => id)).size).toBe(2)
  })

  // dead-lettered-streams replays a stream in order and once
  test('that could not be read wait until they are redriven by a release that reads them, in order and once', {
    tags: 'long',
  }, async () => {
    const old = new EventRegistry(aggregates.filter((aggregate) => aggregate !== (policy as never)))
    const first = publishFrom(bench, { registry: old })
    const odd = await issuePolicy()
    const employerId = newId()
    await registerEmployer(employerId)
    await until(() => first.published.length === 1)
    expect(first.published[0]!.type).toBe('employer.registered')
    await until(async () => (await failedWork()).length === 1)
    // what follows in the stream waits behind it
    for (let n = 0; n < MORE_THAN_A_PAGE; n += 1) {
      await changeFrequency(odd.policy_id, n % 2 === 0 ? 'MONTHLY' : 'WEEKLY')
    }
    await allPublished()
    expect(first.published).toHaveLength(1)
    await stopped()

    const second = publishFrom()
    await cancel(odd.policy_id, 'over')
    await allPublished()
    expect(second.published).toEqual([])
    expect(await bench.store.redrive({ dryRun: true })).toBe(1)
    expect(await bench.store.redrive({ dryRun: false })).toBe(1)
    await until(async () => (await second.events.status()).deadLetteredStreams === 0)
    const changed = Array(MORE_THAN_A_PAGE).fill('policy.changed')
    const types = second.published.map(({ type }) => type)
    expect(types).toEqual(['policy.issued', ...changed, 'policy.cancelled'])
    expect(await failedWork()).toEqual([])
    // and is followed as any other
    const again = await issuePolicy()
    await cancel(again.policy_id, 'over')
    await until(() => second.published.length === MORE_THAN_A_PAGE + 4)
  })

  test('of one of our types that cannot be read dead-letter their stream, and no other', async () => {
    const channel = publishFrom(await another())
    const unreadable: Record<string, { readonly data: string; readonly metadata: string }> = {
      data: { data: '{"policy_id":7}', metadata: JSON.stringify(EVENT_METADATA) },
      none: { data: '{}', metadata: '{}' },
      foreign: { data: '{}', metadata: '{"schema_version":1,"tenant_id":7}' },
      ...(canStoreGarbage ? { noJson: { data: '{"a', metadata: '' } } : {}),
    }
    for (const [name, event] of Object.entries(unreadable)) {
      await appendForeign(testDatabase.url, `policy-${name}`, { type: 'PolicyIssued', ...event })
    }
    await issuePolicy()
    await until(() => channel.published.length === 1)
    const failed = async () => (await failedWork()).map(({ key }) => key).sort()
    const streams = Object.keys(unreadable).map((name) => `policy-${name}`)
    await until(async () => (await failed()).length === streams.length)
    expect(await failed()).toEqual(streams.sort())
  })

  // the ones above park a stream, and no other
  test('a channel that is made anew gets what stood before a dead-lettered event, too', {
    tags: 'long',
  }, async () => {
    const channel = publishFrom()
    channel.refused.add('policy.changed')
    const odd = await issuePolicy()
    await changeFrequency(odd.policy_id, 'MONTHLY')
    await until(async () => (await failedWork()).length === 1)
    await stopped()
    const second = new Counted()
    let isThere = false
    const parts = {
      exists: async () => isThere,
      create: async () => {
        isThere = true
      },
    }
    publishFrom(bench, { channel: Object.assign(second, parts) })
    await until(() => second.published.length === 2)
    expect(second.published.map(({ type }) => type)).toEqual(['policy.issued', 'policy.changed'])
    await until(async () => (await failedWork()).length === 0)
  })

  test('too large for the stream as it is set are refused as such', async () => {
    const own = await startNats()
    const connected = await Nats.open([own.url], SILENT)
    try {
      const manager = await connected.connection.jetstreamManager()
      await manager.streams.add({
        name: INTEGRATION_STREAM,
        subjects: ['compstream.live.>'],
        max_msg_size: 1_000,
      })
      const event = () =>
        ({ id: randomUUID(), type: 'policy.issued', environment: 'live', tenantId }) as const
      const channel = new JetStreamIntegrationEvents(connected)
      await channel.publish({ ...event(), text: '"small"' })
      for (const size of [1_001, 2 * 1024 * 1024]) {
        const large = channel.publish({ ...event(), text: JSON.stringify('x'.repeat(size)) })
        await expect(large).rejects.toBeInstanceOf(IntegrationEventRefused)
      }
    } finally {
      await connected.close()
      await own.stop()
    }
  })

  test('run in one process at a time', async () => {
    const other = await openWorkbench(testDatabase.url)
    more.push(other)
    const channels = [publishFrom(), publishFrom(other)]
    for (let n = 0; n < 5; n += 1) await issuePolicy()
    await allPublished()
    expect(channels.map(({ published }) => published.length).sort()).toEqual([0, 5])
  })
})

describe.skipIf(!natsCanBeKilled)('integration events when the NATS server', () => {
  // dead-lettered-streams sets a stream aside, nats-wake-up goes on without the server
  test('is away: a drain waits for no stream that is dead-lettered', { tags: 'long' }, async () => {
    const runner = await bench.run([])
    const channel = publishFrom()
    channel.refused.add('policy.issued')
    await issuePolicy()
    await until(async () => (await failedWork()).length === 1)
    const parts = bench.drainParts(runner)
    const both = { ...parts, integrationEvents: channel.events }
    expect(await bench.store.redrive({ dryRun: false })).toBe(1)
    // where they can be told, it waits until they are, or are given up again
    expect(await drain(both, 240_000)).toBe(true)
    expect(await failedWork()).toHaveLength(1)
    await server.own!.kill()
    await until(() => !nats.connected)
    expect(await bench.store.redrive({ dryRun: false })).toBe(1)
    expect(await drain(both, 240_000)).toBe(true)
    // NATS is not configured any more
    expect(await drain(parts, 240_000)).toBe(true)
    channel.refused.clear()
    await server.own!.restart()
    await until(() => channel.published.length === 1)
  })

  // dead-lettered-streams has an outage that costs none
  test('does not take for now: that costs dead-lettered streams no try', { tags: 'long' }, async () => {
    const channel = publishFrom()
    channel.refused.add('policy.issued')
    for (let n = 0; n < 3; n += 1) await issuePolicy()
    await until(async () => (await failedWork()).length === 3)
    channel.refused.clear()
    channel.gate = Promise.reject(new Error('no answer in time'))
    channel.gate.catch(() => undefined)
    expect(await bench.store.redrive({ dryRun: false })).toBe(3)
    await until(() => bench.reports.some((report) => report.startsWith('integration_events_interrupted')))
    await stopped()
    const { rows } = await bench.database.pool.query('SELECT state, attempts FROM runtime.work')
    expect(rows).toEqual(Array(3).fill({ state: 'due', attempts: 0 }))
    const next = publishFrom()
    await until(() => next.published.length === 3)
  })

  test('comes back empty: everything is there again', async () => {
    publishFrom()
    await issuePolicy()
    await allPublished()
    const before = await stored()
    await server.own!.restart({ emptied: true })
    await until(() => nats.connected)
    await until(async () => (await stored().catch(() => [])).length === 1)
    expect(await stored()).toEqual(before)
  })
})
