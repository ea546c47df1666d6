import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Effort } from '../effort.ts'
import { debitOf, fileNameOf, storeDebitsAndFiles, traceOf } from '../our-search.ts'
import type { Row } from '../report.ts'
import { type BenchServer, OPERATOR_TOKEN, seedParticipants, startService } from '../servers.ts'
import { type Figure, percentile, sameRandoms } from '../statistics.ts'

const ROUNDS = 3
/** Searches of a kind in a round, one at a time. */
const SEARCHES = 200
const LIMIT_MS = 50
const LOOK_MS = 500
const PAYER = 'payer@bench.example'

/**
 * `GET /search`, one at a time, by kind of term, among half as many debits as `--events` says and a tenth as many files.
 * What makes further events of them, a worker, does not run.
 */
export async function measureSearch(server: BenchServer, effort: Effort): Promise<Row[]> {
  const [debits, files] = [effort.logEvents / 2, effort.logEvents / 10]
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
    await sellTo(service.ready.payments, participants)
    await service.stop()
    await storeDebitsAndFiles(url, debits, files, participants)
    service = await startService({ ...env, ROLES: 'api,projector' })
    const { ops } = service.ready
    await caughtUp(ops)
    const next = sameRandoms()
    const any = (below: number) => Math.floor(next() * below)
    const terms: Readonly<Record<string, () => string>> = {
      'the id of a debit': () => debitOf(any(debits)),
      'a trace number': () => traceOf(any(debits)),
      'the name of a file': () => fileNameOf(any(files)),
      'the beginning of the names of all files': () => 'ach-bench',
      'the beginning of a legal name': () => 'bench builders',
      'an email address': () => PAYER,
      'a FEIN': () => participants.fein,
      'nothing that is there': () => `none ${any(1_000_000)}`,
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
  if (!answer.ok) throw new Error(`GET /search answered ${answer.status}: ${text}`)
  return { ms, found: (JSON.parse(text) as { data: readonly unknown[] }).data.length }
}

/** A payment link, which is found by the address of its payer. */
async function sellTo(
  payments: string,
  participants: Awaited<ReturnType<typeof seedParticipants>>,
): Promise<void> {
  const { employerId, carrierId, policyId, partnerHeaders } = participants
  const answer = await fetch(`${payments}/api/v1/payment-links`, {
    method: 'POST',
    headers: { ...partnerHeaders, 'content-type': 'application/json' },
    body: JSON.stringify({
      employer_id: employerId,
      carrier_id: carrierId,
      policy_id: policyId,
      premium_cents: 125_000,
      payment_type: 'ONE_TIME',
      payment_context: 'full_payment',
      customer: { name: 'Bench Builders LLC', email: PAYER },
      delivery: { email: false, sms: false },
    }),
  })
  if (!answer.ok) throw new Error(`POST /payment-links answered ${answer.status}: ${await answer.text()}`)
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
