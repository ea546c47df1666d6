import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startBareExpress } from '../asks.ts'
import type { Effort } from '../effort.ts'
import { KNOWN_FILES } from '../peers/bare-express.ts'
import type { Row } from '../report.ts'
import { type BenchServer, OPERATOR_TOKEN, seedParticipants, startService } from '../servers.ts'
import { inTurns } from '../statistics.ts'
import { roundOf } from './requests.ts'

const ROUNDS = 5
/** Sessions whose pages are looked at in turn. */
const SESSIONS = 200

/** The page of payment sessions that were opened before, against bare Express, which sends the same bytes after a read. */
export async function measurePayerPage(server: BenchServer, effort: Effort): Promise<Row[]> {
  const dataDir = await mkdtemp(join(tmpdir(), 'compstream-bench-data-'))
  const service = await startService({
    DATA_DIR: dataDir,
    DATABASE_URL: await server.createDatabase('payer_page'),
    LOG_LEVEL: 'info',
  })
  const bare = await startBareExpress(server, 'payer_page')
  try {
    const participants = await seedParticipants(service.ready)
    const urls: string[] = []
    for (let n = 0; n < SESSIONS; n += 1) urls.push(await newSession(service.ready, participants))
    const pages = await Promise.all(urls.map(async (url) => (await fetch(url)).text()))
    const { bareExpress } = bare.ready
    const headers = { 'Content-Type': 'text/html' }
    await fetch(`${bareExpress}/page`, { method: 'PUT', headers, body: pages[0]! })
    const bareUrls = KNOWN_FILES.slice(0, SESSIONS).map((id) => `${bareExpress}/page/${id}`)
    const { ours, theirs } = await inTurns(effort.rounds(ROUNDS), {
      ours: roundOf({ kind: 'get', urls, headers: {} }, effort),
      theirs: roundOf({ kind: 'get', urls: bareUrls, headers: {} }, effort),
    })
    const slowest = (figures: typeof ours) => figures.map(({ p99 }) => ({ value: p99! }))
    const kib = (Buffer.byteLength(pages[0]!) / 1024).toFixed(1)
    const work = `page of a payment session, ${kib} KiB`
    const name = 'bare Express, the same bytes after one indexed read'
    return [
      {
        work,
        unit: 'per second',
        ours,
        peer: { name, rounds: theirs },
        target: { kind: 'at least', ratio: 0.6, unit: 'percent' },
      },
      {
        work: `${work}, p99`,
        unit: 'ms',
        ours: slowest(ours),
        peer: { name, rounds: slowest(theirs) },
        target: { kind: 'at most', ratio: 2 },
      },
    ]
  } finally {
    await Promise.all([service.stop(), bare.stop()])
    await rm(dataDir, { recursive: true, force: true })
  }
}

/** Sells a session of a tenant with a checkout of its own. @returns the address of its page. */
async function newSession(
  { payments, ops }: { readonly payments: string; readonly ops: string },
  participants: Awaited<ReturnType<typeof seedParticipants>>,
): Promise<string> {
  const { tenantId, employerId, carrierId, policyId, partnerHeaders } = participants
  const ask = async (method: string, url: string, headers: Record<string, string>, body: object) => {
    const answer = await fetch(url, {
      method,
      headers: { ...headers, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    })
    if (!answer.ok) throw new Error(`${url} answered ${answer.status}: ${await answer.text()}`)
    return ((await answer.json()) as { data: { url: string } }).data
  }
  const operator = { Authorization: `Bearer ${OPERATOR_TOKEN}` }
  await ask('PUT', `${ops}/ops/v1/tenants/${tenantId}/checkout`, operator, {
    enabled: true,
    display_name: 'Bench Premium Pay',
    support_email: 'help@bench.example',
    sender_name: 'Bench',
    sender_email: 'billing@bench.example',
    accent_color: '#0b7a75',
    link_format: '/pay/{token}',
    link_ttl_minutes: 1_440,
  })
  const { url } = await ask('POST', `${payments}/api/v1/payment-sessions`, partnerHeaders, {
    employer_id: employerId,
    carrier_id: carrierId,
    policy_id: policyId,
    premium_cents: 125_000,
    fee_cents: 1_500,
    description: 'Workers’ compensation, first quarter',
    fee_breakdown: [
      { label: 'Filing fee', amount_cents: 1_000 },
      { label: 'Service fee', amount_cents: 500 },
    ],
    customer: { name: 'Bench Builders LLC', email: 'office@bench.example' },
  })
  return url
}
