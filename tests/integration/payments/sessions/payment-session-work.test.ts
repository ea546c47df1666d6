import { afterAll, beforeAll, expect, test } from 'vitest'
import { bankDebits } from '../../../../application/banking/debits/bank-debits-process-manager.ts'
import { createSessionDebit } from '../../../../application/banking/debits/create-debit.ts'
import { installmentDebitId } from '../../../../application/banking/debits/session-debits.ts'
import type { Application } from '../../../../application/commands/application.ts'
import { debitIdOf, signingDebit } from '../../../../application/payments/sessions/arrange-debit.ts'
import { paymentSessions } from '../../../../application/payments/sessions/payment-sessions-process-manager.ts'
import { bankDebit } from '../../../../domain/banking/debits/bank-debit.ts'
import { isoTime } from '../../../../domain/kernel/calendar.ts'
import { paymentSession } from '../../../../domain/payments/sessions/payment-session.ts'
import { sessionPlan } from '../../../../domain/payments/sessions/session-plan.ts'
import { SimulatedCardProcessor } from '../../../../infrastructure/providers/card/simulated.ts'
import { expectAlertedOnce, workItem } from '../../../support/provider-outages.ts'
import {
  accepted,
  moveClock,
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

test('an installment that falls due before its session hears that the down payment came back is not debited', async () => {
  const id = newId()
  const plan = sessionPlan(100_000, 20_000, 2)
  const data = sessionData(app, id, { amount_cents: 20_000, premium_cents: 100_000, plan })
  const run = async (command: Parameters<typeof paymentSession.decide>[0]) =>
    accepted(await app.commands.execute(paymentSession, id, command, operatorContext())).state!
  await run({ type: 'Create', data, checkout: null })
  const debitId = debitIdOf(id)
  const numbers = { account_ref: 'x', fingerprint: id, account_last4: '6789' }
  const account = { ...numbers, account_type: 'checking' } as const
  const session = await run({ type: 'ArrangeDebit', debitId, account, at: app.clock.now() })
  await createSessionDebit(app, session, signingDebit(session, debitId), operatorContext())
  moveClock(app, Date.parse(session.debit!.instalments[0]!.due_at))
  const returned = { return_code: 'R01', at: app.clock.now() }
  for (const command of [
    { type: 'Schedule', at: returned.at },
    { type: 'Acknowledge', at: returned.at },
    { type: 'Return', ...returned },
  ] as const) {
    accepted(await app.commands.execute(bankDebit, debitId, command, operatorContext()))
  }

  const { mint } = paymentSessions(app).work
  const due = { payment_session_id: id, number: 1 }
  expect(await mint.run(workItem({ key: `${id}/1`, payload: due }))).toEqual({ outcome: 'done' })
  expect((await app.commands.load(bankDebit, installmentDebitId(id, 1))).state).toBeNull()
  const { 'take-back': takeBack } = bankDebits(app, 60_000).work
  const told = { leg_id: debitId, return_code: 'R01', at: isoTime(returned.at) }
  await takeBack.run(workItem({ key: debitId, payload: told }))
  const types = (await app.log.readStream(`paymentSession-${id}`)).map(({ type }) => type)
  expect(types).toEqual(['PaymentSessionCreated', 'PaymentSessionDebitArranged', 'PaymentSessionPlanStopped'])
})
