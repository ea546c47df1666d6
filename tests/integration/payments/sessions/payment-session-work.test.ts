import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Application } from '../../../../application/commands/application.ts'
import { paymentSessions } from '../../../../application/payments/sessions/payment-sessions-process-manager.ts'
import { paymentSession } from '../../../../domain/payments/sessions/payment-session.ts'
import { SimulatedCardProcessor } from '../../../../infrastructure/providers/card/simulated.ts'
import { expectAlertedOnce, workItem } from '../../../support/provider-outages.ts'
import {
  accepted,
  openRegistrationProcess,
  operatorContext,
  type RegistrationProcess,
} from '../../../support/registrations.ts'
import { sessionData } from '../../../support/session-data.ts'
import { newId } from '../../../support/webhooks.ts'

let process: RegistrationProcess
let app: Application

beforeAll(async () => {
  process = await openRegistrationProcess()
  const processor = new SimulatedCardProcessor({
    faults: process.app.faults,
    pageOf: (id: string) => `https://pay.example/${id}`,
    chargesAtOnce: false,
    secretFor: (text: string) => text,
  })
  app = { ...process.app, processors: { live: processor, sandbox: processor }, formerProcessors: [] }
})
afterAll(() => process?.bench.close())

test('a session whose processor is away for hours as it expires raises one alert, and expires when it is back', async () => {
  const id = newId()
  const data = sessionData(app, id)
  const over = Date.parse(data.expires_at)
  const open = { checkout_id: newId(), processor_checkout_id: 'cs_1', processor: 'simulated' } as const
  const create = { type: 'Create', data, checkout: open } as const
  accepted(await app.commands.execute(paymentSession, id, create, operatorContext()))

  const types = async () => (await app.log.readStream(`paymentSession-${id}`)).map(({ type }) => type)
  const begun = await types()
  const { expire } = paymentSessions(app).work
  const attempt = (awaySince: number | null) =>
    expire.run(workItem({ kind: 'expire', key: id, payload: {}, awaySince }))
  expect(await attempt(null)).toEqual({ outcome: 'again', at: over })
  await expectAlertedOnce(app, {
    provider: 'card-processor',
    since: over,
    alert: { kind: 'payment_session_held_up', about: { payment_session_id: id, work: 'expire' } },
    attempt,
    types,
  })
  expect(await types()).toEqual([...begun, 'PaymentSessionCheckoutClosed', 'PaymentSessionExpired'])
})
