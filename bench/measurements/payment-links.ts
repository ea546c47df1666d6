import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startBareExpress } from '../asks.ts'
import type { Effort } from '../effort.ts'
import type { Row } from '../report.ts'
import { type BenchServer, seedParticipants, startService } from '../servers.ts'
import { inTurns } from '../statistics.ts'
import { roundOf } from './requests.ts'

const ROUNDS = 5

/** `POST /payment-links` to the running service, with its simulated processor, against a bare Express server that inserts the bodies. */
export async function measurePaymentLinks(server: BenchServer, effort: Effort): Promise<Row[]> {
  const dataDir = await mkdtemp(join(tmpdir(), 'compstream-bench-data-'))
  const service = await startService({
    DATA_DIR: dataDir,
    DATABASE_URL: await server.createDatabase('payment_links'),
    LOG_LEVEL: 'info',
  })
  const bare = await startBareExpress(server, 'payment_links')
  try {
    const { employerId, carrierId, policyId, partnerHeaders } = await seedParticipants(service.ready)
    const body = JSON.stringify({
      employer_id: employerId,
      carrier_id: carrierId,
      policy_id: policyId,
      premium_cents: 125_000,
      fee_cents: 500,
      payment_type: 'ONE_TIME',
      payment_context: 'full_payment',
      customer: { name: 'Bench Builders LLC', email: 'office@bench.example' },
      delivery: { email: false, sms: false },
      metadata: { quote: 'Q-1001' },
    })
    const url = `${service.ready.payments}/api/v1/payment-links`
    const { ours, theirs } = await inTurns(effort.rounds(ROUNDS), {
      ours: roundOf({ kind: 'post', url, headers: partnerHeaders, body }, effort),
      theirs: roundOf({ kind: 'post', url: `${bare.ready.bareExpress}/insert`, headers: {}, body }, effort),
    })
    return [
      {
        work: 'payment link created',
        unit: 'per second',
        ours,
        peer: { name: 'bare Express, one insert', rounds: theirs },
        target: { kind: 'at least', ratio: 0.5, unit: 'percent' },
      },
    ]
  } finally {
    await Promise.all([service.stop(), bare.stop()])
    await rm(dataDir, { recursive: true, force: true })
  }
}
