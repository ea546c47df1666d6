import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Application } from '../../application/application.ts'
import { paymentSessions } from '../../application/process-managers/payment-sessions.ts'
import { isoTime } from '../../domain/kernel/calendar.ts'
import type { Sealed } from '../../domain/kernel/sealed.ts'
import { paymentSession } from '../../domain/payments/payment-session.ts'
import { SimulatedCardProcessor } from '../../infrastructure/providers/card/simulated.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { expectToldOfOnce, type Waiting, workItem } from '../support/provider-outages.ts'
import {
  accepted,
  openRegistrationProcess,
  operatorContext,
  type RegistrationProcess,
} from '../support/registrations.ts'
import { newId } from '../support/webhooks.ts'

const HOUR = 3_600_000

let database: TestDatabase
let process: RegistrationProcess
let app: Application

beforeAll(async () => {
  database = await createTestDatabase()
  process = await openRegistrationProcess(database.url)
  const processor = new SimulatedCardProcessor({
    faults: process.app.faults,
    pageOf: (id: string) => `https://pay.example/${id}`,
    chargesAtOnce: false,
    secretFor: (text: string) => text,
  })
  app = { ...process.app, processors: { live: processor, sandbox: processor }, formerProcessors: [] }
})
afterAll(async () => {
  await process?.bench.close()
  await database?.drop()
})

test('a session whose processor is away for hours as it expires is told of once, and expires when it is back', async () => {
  const { clock } = app
  const [id, owner, text] = [newId(), newId(), 'sld1.employer/x.AAAA' as Sealed]
  const over = clock.now() + HOUR
  const data = {
    ...({ payment_session_id: id, tenant_id: owner, environment: 'live', mode: 'link' } as const),
    ...{ employer_id: owner, carrier_id: owner, policy_id: owner, replaces: null, created_by: null },
    ...{ amount_cents: 500, premium_cents: 500, fee_cents: 0, plan: null, description: null },
    ...{ line_items: [{ label: 'Premium', amount_cents: 500 }], single_use: true, config_version: 1 },
    customer: { name: text, email: text, phone: null },
    ...{ token_hash: 'f'.repeat(64), token_prefix: 'abcdefgh', host_is_custom: false },
    ...{ created_at: isoTime(clock.now()), expires_at: isoTime(over) },
  }
  const open = { checkout_id: newId(), processor_checkout_id: 'cs_1', processor: 'simulated' } as const
  const create = { type: 'Create', data, checkout: open } as const
  accepted(await app.commands.execute(paymentSession, id, create, operatorContext()))

  const types = async () => (await app.log.readStream(`paymentSession-${id}`)).map(({ type }) => type)
  const begun = await types()
  const { expire } = paymentSessions(app).work
  const attempt = (payload: Waiting) => expire.run(workItem({ key: id, payload }))
  expect(await attempt({})).toEqual({ outcome: 'again', at: over })
  await expectToldOfOnce(app, {
    ...{ provider: 'card-processor', since: over, heldUp: 'PaymentSessionHeldUp', attempt, types },
  })
  expect(await types()).toEqual([
    ...[...begun, 'PaymentSessionHeldUp', 'PaymentSessionCheckoutClosed', 'PaymentSessionExpired'],
  ])
})
