// @module-tag long: integration/legacy-duplicates stores lines that another attempt has stored
import { mkdtemp, rm } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { importIdOf } from '../../application/banking/legacy-import.ts'
import { askOperator, operate, type SeededTenant, seedTenant } from '../support/seed.ts'
import { type RunningService, startService } from '../support/service.ts'

/** An import that dies with the service on its way, and is sent again. */

const LINES = 30_000
const NAME = 'cut-over'

let dataDir: string
let service: RunningService
let tenant: SeededTenant

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'compstream-chaos-'))
  service = await startService({ dataDir })
  tenant = await seedTenant(service)
})
afterAll(async () => {
  await service?.stop()
  await rm(dataDir, { recursive: true, force: true })
})

const lineOf = (index: number) =>
  `${JSON.stringify({
    employer_id: tenant.employerId,
    policy_id: tenant.policyId,
    status: 'sb_remit',
    period_start: '2026-04-20',
    period_end: '2026-04-26',
    premium_cents: index + 1,
  })}\n`

/** Sends all lines, about as fast as they are taken. @returns the answer; null when the service died before it. */
function sendAll(): Promise<unknown> {
  return new Promise((resolve) => {
    const sending = request(`${service.opsUrl}/ops/v1/legacy-collections/import?import_id=${NAME}`, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${service.operatorToken}`,
        'Content-Type': 'application/x-ndjson',
      },
    })
    sending.on('error', () => resolve(null))
    sending.on('response', async (response) => {
      let text = ''
      for await (const part of response) text += part
      resolve(JSON.parse(text).data)
    })
    let index = 0
    const more = () => {
      for (; index < LINES; index += 1) {
        if (!sending.write(lineOf(index))) {
          index += 1
          sending.once('drain', more)
          return
        }
      }
      sending.end()
    }
    more()
  })
}

async function storedLines(): Promise<number> {
  const { status, body } = await askOperator(service, 'GET', `/legacy-collections/import?import_id=${NAME}`)
  return status === 404 ? 0 : body.data.stored
}

test('every line is stored once, however often the service is killed on the way', async () => {
  for (const least of [1, 8_000]) {
    const answer = sendAll()
    while ((await storedLines()) < least);
    await service.kill()
    expect(await answer, 'the kill came too late').toBeNull()
    service = await startService({ dataDir })
  }
  const before = await storedLines()
  expect(before).toBeGreaterThanOrEqual(8_000)
  expect(await sendAll()).toMatchObject({ stored: LINES - before, repeated: before, refused_count: 0 })
  expect(await sendAll()).toMatchObject({ stored: 0, repeated: LINES, refused_count: 0 })

  const amounts: number[] = []
  for (let from = 1; ; from += 10) {
    const path = `/streams/legacyImport-${importIdOf(NAME)}?from=${from}&limit=10`
    const events = await operate(service, 'GET', path)
    for (const { data } of events) {
      for (const { line, premium_cents } of data.rows) {
        expect(premium_cents).toBe(line)
        amounts.push(premium_cents)
      }
    }
    if (events.length < 10) break
  }
  expect(amounts.sort((one, other) => one - other)).toEqual(Array.from({ length: LINES }, (_, n) => n + 1))
  await operate(service, 'POST', '/drain')
  const projection = await operate(service, 'GET', '/projections/legacy-collections')
  expect(projection).toMatchObject({ state: 'active', parked: [] })
})
