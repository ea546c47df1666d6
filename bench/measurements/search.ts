import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { MAX_SEARCH } from '../../application/search/terms.ts'
import type { Effort } from '../effort.ts'
import { debitOf, fileNameOf, fillReadModels, storeDebitsAndFiles, traceOf } from '../our-search.ts'
import type { Row } from '../report.ts'
import {
  type BenchServer,
  OPERATOR_TOKEN,
  type Participants,
  type ServiceAddresses,
  seedParticipants,
  startService,
} from '../servers.ts'
import { type Figure, percentile, sameRandoms } from '../statistics.ts'

const ROUNDS = 3
/** Searches of a kind in a round, one at a time. */
const SEARCHES = 200
const LIMIT_MS = 50
const LOOK_MS = 500
/** Payers, of one link and of many. */
const [PAYER, OFTEN] = ['payer@bench.example', 'often@bench.example']
const MANY_LINKS = 60
/** Idempotency keys, of one caller and of as many as are found. */
const [KEY, SHARED_KEY] = ['bench-order', 'bench-shared']
const SHARING = 10

/**
 * `GET /search`, one at a time, by kind of term, among a million debits and a tenth as many files.
 * What makes further events of them, a worker, does not run. The log has all of them; of the read models' rows all but those
 * of the first file are written by SQL.
 */
export async function measureSearch(server: BenchServer, effort: Effort): Promise<Row[]> {
  const files = Math.ceil(effort.searchedDebits / 10)
  const debits = files * 10
  const dataDir = await mkdtemp(join(tmpdir(), 'compstream-bench-data-'))
  const url = await server.createDatabase('search')
  const env = {
    DATA_DIR: dataDir,
    DATABASE_URL: url,
    LOG_LEVEL: 'info',
    MASTER_KEY: randomBytes(32).toString('base64'),
  }
  let service = await startService(env)
  try {
    const participants = await seedParticipants(service.ready)
    const processorId = await sell(service.ready, participants)
    await service.stop()
    await storeDebitsAndFiles(url, [0, 1], participants)
    service = await startService({ ...env, ROLES: 'api,projector' })
    await caughtUp(service.ready.ops)
    await service.stop()
    await storeDebitsAndFiles(url, [1, files], participants)
    await fillReadModels(url, files)
    service = await startService({ ...env, ROLES: 'api,projector' })
    const { ops } = service.ready
    await caughtUp(ops)
    const next = sameRandoms()
    const any = (below: number) => Math.floor(next() * below)
    const terms: Readonly<Record<string, () => string>> = {
      'the id of a debit': () => debitOf(any(debits)),
      'the id of an employer': () => participants.employerId,
      'an id of nothing': () => 'f'.repeat(24),
      'a trace number': () => traceOf(any(debits)),
      'the name of a file': () => fileNameOf(any(files)),
      'the beginning of the names of all files': () => 'ach-bench',
      'the beginning of a legal name': () => 'bench builders',
      'an email address': () => PAYER,
      [`an email address of ${MANY_LINKS} links`]: () => OFTEN,
      'a FEIN': () => participants.fein,
      'a policy number': () => participants.policyNumber,
      'an idempotency key': () => KEY,
      [`an idempotency key of ${SHARING} callers`]: () => SHARED_KEY,
      "an id of a provider's": () => processorId,
      'one letter': () => 'b',
      'nothing that is there': () => `none ${any(1_000_000)}`,
      '%': () => '%',
      '10,000 characters, refused': () => 'q'.repeat(10_000),
    }
    const rows: Row[] = []
    for (const [name, term] of Object.entries(terms)) {
      const ours: Figure[] = []
      const note = `${(await search(ops, term())).found} found`
      for (let round = 0; round < effort.rounds(ROUNDS); round += 1) {
        const times: number[] = []
        for (let n = 0; n < SEARCHES; n += 1) times.push((await search(ops, term())).ms)
        ours.push({ value: percentile(times, 0.95), p50: percentile(times, 0.5) })
      }
      rows.push({
        work: `search of ${debits.toLocaleString('en-US')} debits, ${files.toLocaleString('en-US')} files: ${name}, p95`,
        unit: 'ms',
        ours,
        peer: null,
        target: { kind: 'below', value: LIMIT_MS },
        note,
      })
    }
    return rows
  } finally {
    await service.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}

const headers = { authorization: `Bearer ${OPERATOR_TOKEN}` }

async function search(ops: string, term: string): Promise<{ readonly ms: number; readonly found: number }> {
  const begun = performance.now()
  const answer = await fetch(`${ops}/ops/v1/search?q=${encodeURIComponent(term)}`, { headers })
  const text = await answer.text()
  const ms = performance.now() - begun
  if (!answer.ok && (term.length <= MAX_SEARCH || answer.status !== 400)) {
    throw new Error(`GET /search answered ${answer.status}: ${text}`)
  }
  return { ms, found: answer.ok ? (JSON.parse(text) as { data: readonly unknown[] }).data.length : 0 }
}

/** Payment links, which are found by payer, key and the processor's id. @returns the last of these, of the first link. */
async function sell({ ops, payments }: ServiceAddresses, participants: Participants): Promise<string> {
  const { tenantId: tenant_id, partnerHeaders } = participants
  const link = await sellTo(payments, participants, PAYER, KEY, partnerHeaders)
  for (let n = 0; n < MANY_LINKS; n += 1)
    await sellTo(payments, participants, OFTEN, `often-${n}`, partnerHeaders)
  for (let n = 0; n < SHARING; n += 1) {
    const client = { tenant_id, name: `Caller ${n}`, environment: 'live', products: ['payments'] }
    const { client_id, client_secret } = await operator('POST', `${ops}/ops/v1/api-clients`, client)
    const callers = { 'x-client-id': client_id!, 'x-client-secret': client_secret! }
    await sellTo(payments, participants, `caller-${n}@bench.example`, SHARED_KEY, callers)
  }
  const shown = await operator('GET', `${ops}/ops/v1/payment-links/${link}`)
  return shown.processor_payment_link_id!
}

async function operator(
  method: string,
  url: string,
  body?: object,
): Promise<Readonly<Record<string, string>>> {
  const answer = await fetch(url, {
    method,
    headers: { ...headers, 'content-type': 'application/json' },
    body: body === undefined ? null : JSON.stringify(body),
  })
  if (!answer.ok) throw new Error(`${method} ${url} answered ${answer.status}: ${await answer.text()}`)
  return ((await answer.json()) as { data: Record<string, string> }).data
}

/** @returns the id of a payment link. */
async function sellTo(
  payments: string,
  { employerId, carrierId, policyId }: Participants,
  email: string,
  key: string,
  callers: Readonly<Record<string, string>>,
): Promise<string> {
  const answer = await fetch(`${payments}/api/v1/payment-links`, {
    method: 'POST',
    headers: { ...callers, 'content-type': 'application/json', 'idempotency-key': key },
    body: JSON.stringify({
      employer_id: employerId,
      carrier_id: carrierId,
      policy_id: policyId,
      premium_cents: 125_000,
      payment_type: 'ONE_TIME',
      payment_context: 'full_payment',
      customer: { name: 'Bench Builders LLC', email },
      delivery: { email: false, sms: false },
    }),
  })
  if (!answer.ok) throw new Error(`POST /payment-links answered ${answer.status}: ${await answer.text()}`)
  return ((await answer.json()) as { data: { _id: string } }).data._id
}

/** Waits until every read model is at the head of the log. */
async function caughtUp(ops: string): Promise<void> {
  for (;;) {
    const answer = await fetch(`${ops}/ops/v1/projections`, { headers })
    const { data } = (await answer.json()) as { data: readonly { lag: { events: number } }[] }
    if (data.every(({ lag }) => Number(lag.events) === 0)) return
    await delay(LOOK_MS)
  }
}
