import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Application } from '../../../../application/commands/application.ts'
import { derivedId } from '../../../../application/commands/event-registry.ts'
import type { ProcessManager } from '../../../../application/followers/process-manager.ts'
import { raiseHeldUp } from '../../../../application/followers/through-outages.ts'
import { completeLink } from '../../../../application/payments/links/completions.ts'
import { createLink, type NewPaymentLink } from '../../../../application/payments/links/create-link.ts'
import { paymentLinks } from '../../../../application/payments/links/payment-links-process-manager.ts'
import { parkNotice, placeOf } from '../../../../application/payments/parked-notices.ts'
import { heldUp } from '../../../../application/payments/processor/processor-of.ts'
import { processorNotices } from '../../../../application/payments/processor-notices-process-manager.ts'
import {
  prepareSubscription,
  startSubscription,
} from '../../../../application/payments/subscriptions/subscriptions.ts'
import * as policies from '../../../../application/policies/policies.ts'
import type { OutgoingMessage } from '../../../../application/ports/messages.ts'
import { ProviderRefused } from '../../../../application/ports/provider.ts'
import type { ApiClient } from '../../../../domain/access/api-client.ts'
import { isoTime } from '../../../../domain/kernel/calendar.ts'
import { paymentLink } from '../../../../domain/payments/links/payment-link.ts'
import { processorNotice } from '../../../../domain/payments/processor/processor-notice.ts'
import {
  dueAt,
  nextOverdueAt,
  numberOf,
  subscription,
} from '../../../../domain/payments/subscriptions/subscription.ts'
import { SimulatedCardProcessor } from '../../../../infrastructure/providers/card/simulated.ts'
import { expectAlertedOnce, workItem } from '../../../support/provider-outages.ts'
import {
  accepted,
  Crashed,
  crashingAt,
  issuePolicy,
  moveClock,
  newPolicy,
  openRegistrationProcess,
  operatorContext,
  type RegistrationProcess,
  registerInsured,
} from '../../../support/registrations.ts'
import { newPolicyNumber } from '../../../support/seed.ts'

let process: RegistrationProcess
let app: Application
let client: ApiClient
let employerId: string
let carrierId: string
const sent: OutgoingMessage[] = []
/** Up to where read models have come; null: wherever they are asked for. */
let reached: bigint | null = null
const askedFor: bigint[] = []

beforeAll(async () => {
  process = await openRegistrationProcess()
  const { faults } = process.app
  const settings = {
    faults,
    pageOf: (id: string) => `https://pay.example/${id}`,
    chargesAtOnce: false,
    secretFor: (text: string) => text,
  }
  const processor = new SimulatedCardProcessor(settings)
  app = {
    ...process.app,
    processors: { live: processor, sandbox: processor },
    formerProcessors: [],
    messages: { send: async (message) => void sent.push(message) },
    readModels: {
      reached: async () => true,
      async awaitProjections(_aggregate, position) {
        askedFor.push(position)
        return reached === null || position <= reached
      },
    },
  }
  const insured = await registerInsured(app)
  ;({ carrierId, employerId } = insured)
  const { tenantId: tenant_id } = insured
  client = { tenant_id, environment: 'live', carrier_ids: 'all', employer_ids: 'all' } as unknown as ApiClient
})
afterAll(() => process?.bench.close())

async function issuedPolicy(status: 'active' | 'in_progress'): Promise<string> {
  const policy = newPolicy({
    employer_id: employerId,
    carrier_id: carrierId,
    policy_number: newPolicyNumber(),
    status,
    billing_type: 'DIRECT_BILLING',
  })
  return accepted(await issuePolicy(app, policy, operatorContext())).policy_id
}

async function newLink(policyId: string, terms: Partial<NewPaymentLink> = {}): Promise<string> {
  const link: NewPaymentLink = {
    employer_id: employerId,
    carrier_id: carrierId,
    policy_id: policyId,
    premium_cents: 10_000,
    fee_cents: 0,
    fee_breakdown: [],
    payment_type: 'ONE_TIME',
    payment_context: 'full_payment',
    customer: { name: 'Payer', email: 'payer@payer.example', phone: null },
    delivery: { email: true, sms: false },
    total_installments: null,
    down_payment_months: null,
    created_by: null,
    after_completion_url: null,
    invoice_id: null,
    metadata: {},
    ...terms,
  }
  const context = { ...operatorContext(), tenantId: client.tenant_id, environment: 'live' as const }
  return accepted(await createLink(app, client, link, context)).payment_link_id
}

/** As a database that was restored knows it. */
const item = <Payload>(key: string, payload: Payload) => workItem({ key, payload, isLastTry: false })

test('an invitation is not sent again when the work comes again that has sent it', async () => {
  const linkId = await newLink(await issuedPolicy('active'))
  const deliver = () =>
    paymentLinks(app).work.deliver.run(
      item(`${linkId}/email`, { payment_link_id: linkId, channel: 'email' as const }),
    )
  expect(await deliver()).toEqual({ outcome: 'done' })
  expect(sent.map(({ to }) => to)).toEqual(['payer@payer.example'])
  expect(await deliver()).toEqual({ outcome: 'done' })
  expect(sent).toHaveLength(1)
})

test('a payment is told only when its policy reads as active; a policy that is so for long is not waited for', async () => {
  const pay = async (policyId: string) => {
    const linkId = await newLink(policyId)
    const payment = { processorPaymentId: `pi_${linkId}`, paymentMethodId: null, amountCents: null }
    accepted(await completeLink(app, { linkId, ...payment, at: app.clock.now() }, operatorContext()))
    const work = item(linkId, {})
    return () => paymentLinks(app).work.complete.run(work)
  }
  const raised = async () =>
    (await app.log.readAll({ after: 0n, maxCount: 10_000, types: ['WebhookEventRaised'] })).events.length

  const before = await app.log.head()
  const complete = await pay(await issuedPolicy('in_progress'))
  reached = before
  expect(await complete()).toMatchObject({ outcome: 'again' })
  expect(await raised()).toBe(0)
  reached = null
  expect(await complete()).toEqual({ outcome: 'done' })
  expect(await raised()).toBe(1)

  const policyId = await issuedPolicy('active')
  const issuedAt = await app.log.head()
  const completeNext = await pay(policyId)
  askedFor.length = 0
  expect(await completeNext()).toEqual({ outcome: 'done' })
  expect(askedFor.filter((position) => position > issuedAt)).toEqual([])
  expect(await raised()).toBe(2)
})

test('a plan whose processor is away for hours raises one alert, and starts when it is back', async () => {
  const plan = { payment_type: 'DIRECT_BILLING', total_installments: 3, down_payment_months: 1 } as const
  const linkId = await newLink(await issuedPolicy('active'), plan)
  const payment = { processorPaymentId: 'pi_plan', paymentMethodId: 'pm_card_payer', amountCents: null }
  accepted(await completeLink(app, { linkId, ...payment, at: app.clock.now() }, operatorContext()))
  await expectAlertedOnce(app, {
    provider: 'card-processor',
    since: app.clock.now(),
    alert: { kind: 'payment_link_held_up', about: { payment_link_id: linkId, work: 'start-plan' } },
    attempt: (awaySince) =>
      paymentLinks(app).work['start-plan'].run(
        workItem({ kind: 'start-plan', key: linkId, payload: {}, awaySince }),
      ),
    types: async () => (await app.log.readStream(`paymentLink-${linkId}`)).map(({ type }) => type),
  })
  const started = await app.log.readAll({ after: 0n, maxCount: 10_000, types: ['SubscriptionStarted'] })
  expect(started.events).toHaveLength(1)
})

test('what an earlier release said of a plan that waits is not said again', async () => {
  const linkId = await newLink(await issuedPolicy('active'))
  const [stream, since] = [`paymentLink-${linkId}`, app.clock.now()]
  const raised = async () => {
    const { events } = await app.log.readAll({ after: 0n, maxCount: 10_000, types: ['AlertRaised'] })
    return events
      .map(({ data }) => JSON.parse(data).about)
      .filter((about) => about.payment_link_id === linkId)
  }
  const told = { payment_link_id: linkId, work: 'start-plan', since: isoTime(since), at: isoTime(since) }
  const metadata = '{"schema_version":1}'
  await app.log.append(stream, 0, [{ type: 'PaymentLinkHeldUp', data: JSON.stringify(told), metadata }])
  const tell = (work: string, from: number) =>
    raiseHeldUp(app, heldUp('payment_link', linkId, work), operatorContext(), from)
  await tell('start-plan', since)
  expect(await raised()).toEqual([])
  await tell('settle-refund', since)
  await tell('start-plan', since + 1)
  expect((await raised()).map(({ work }) => work)).toEqual(['settle-refund', 'start-plan'])
})

test('a plan that starts weeks late is charged from then on, each month for itself', async () => {
  const { clock } = app
  const plan = { payment_type: 'DIRECT_BILLING', total_installments: 3, down_payment_months: 1 } as const
  const linkId = await newLink(await issuedPolicy('active'), plan)
  const payment = { processorPaymentId: 'pi_late', paymentMethodId: 'pm_card_payer', amountCents: null }
  accepted(await completeLink(app, { linkId, ...payment, at: clock.now() }, operatorContext()))
  moveClock(app, clock.now() + 80 * 86_400_000)
  expect(await paymentLinks(app).work['start-plan'].run(item(linkId, {}))).toEqual({ outcome: 'done' })
  const { state } = await app.commands.load(subscription, derivedId(linkId, 'plan-subscription'))
  const hoursUntilFirst = (dueAt(state!, 1) - clock.now()) / 3_600_000
  expect(hoursUntilFirst).toBeGreaterThanOrEqual(1)
  expect(hoursUntilFirst).toBeLessThan(3.5 * 24)
  expect([1, 2].map((number) => numberOf(state!, dueAt(state!, number)))).toEqual([1, 2])
})

test('every charge that nobody tells of is overdue, not only the first one', async () => {
  const plan = { payment_type: 'DIRECT_BILLING', total_installments: 3, down_payment_months: 1 } as const
  const linkId = await newLink(await issuedPolicy('active'), plan)
  const payment = { processorPaymentId: 'pi_silent', paymentMethodId: 'pm_card_payer', amountCents: null }
  accepted(await completeLink(app, { linkId, ...payment, at: app.clock.now() }, operatorContext()))
  await paymentLinks(app).work['start-plan'].run(item(linkId, {}))
  const id = derivedId(linkId, 'plan-subscription')
  const { state } = await app.commands.load(subscription, id)
  const find = processorNotices(app).work['find-overdue']
  const work = item(id, {})
  const dueAts: number[] = []
  for (let dueAt = nextOverdueAt(state!, 0); dueAt !== null; ) {
    dueAts.push(dueAt)
    const outcome = await find.run({ ...work, dueAt })
    dueAt = outcome.outcome === 'again' && 'at' in outcome ? outcome.at! : null
  }
  expect(dueAts).toHaveLength(2)
  expect((await app.commands.load(subscription, id)).state!.overdue).toEqual([1, 2])
})

describe('a policy that is cancelled', () => {
  const cancelPolicy = async (policyId: string) =>
    accepted(await policies.cancel(app, policyId, null, operatorContext()))
  const pay = async (linkId: string, using = app) => {
    const payment = { processorPaymentId: `pi_${linkId}`, paymentMethodId: null, amountCents: null }
    return completeLink(using, { linkId, ...payment, at: app.clock.now() }, operatorContext())
  }
  const eventsOf = async (policyId: string) =>
    (await app.log.readStream(`policy-${policyId}`)).map(({ type }) => type)

  test('after it was paid for while it was active calls for nobody, however often the payment is told', async () => {
    const policyId = await issuedPolicy('active')
    const linkId = await newLink(policyId)
    accepted(await pay(linkId))
    await cancelPolicy(policyId)
    expect(accepted(await pay(linkId))).toEqual({ alreadyPaid: true })
    expect(await paymentLinks(app).work.complete.run(item(linkId, {}))).toEqual({ outcome: 'done' })
    expect(await eventsOf(policyId)).toEqual(['PolicyIssued', 'PolicyCancelled'])
  })

  test('before it was paid for calls for somebody, once', async () => {
    const policyId = await issuedPolicy('active')
    const linkId = await newLink(policyId)
    await cancelPolicy(policyId)
    for (const _again of [1, 2]) accepted(await pay(linkId))
    expect(await eventsOf(policyId)).toEqual(['PolicyIssued', 'PolicyCancelled', 'PolicyNotActivated'])
  })

  test('after it was paid for and never became active calls for somebody', async () => {
    const policyId = await issuedPolicy('in_progress')
    const linkId = await newLink(policyId)
    await expect(pay(linkId, crashingAt(app, { category: 'policy', at: 'before' }))).rejects.toThrow(Crashed)
    await cancelPolicy(policyId)
    accepted(await pay(linkId))
    expect(await eventsOf(policyId)).toEqual(['PolicyIssued', 'PolicyCancelled', 'PolicyNotActivated'])
  })
})

test.each([
  ['that a person has seen to', { type: 'Resolve', note: null, at: 0 }],
  // its work died before the body left
  ['that was carried out', { type: 'RecordCarriedOut', at: 0 }],
] as const)('nothing is kept of a notice %s, though the processor tells it again', async (what, command) => {
  const linkId = await newLink(await issuedPolicy('active'))
  const { state } = await app.commands.load(paymentLink, linkId)
  const noticeId = `evt ${what}`
  const notice = {
    about: 'unread',
    noticeId,
    type: 'payment_intent.succeeded',
    version: null,
    names: [linkId],
    body: '{"receipt_email":"pat@payer.example"}',
  } as const
  const id = derivedId(`${state!.processor}/${noticeId}`, 'processorNotice')
  const kept = async () => (await app.vault.get(placeOf({ notice_id: id }))) !== null
  await parkNotice(app, state!, notice, operatorContext())
  expect(await kept()).toBe(true)
  accepted(await app.commands.execute(processorNotice, id, command, operatorContext()))
  await followNotice(id)
  expect(await kept()).toBe(false)
  await parkNotice(app, state!, notice, operatorContext())
  expect(await kept()).toBe(false)
})

/** Does what is wanted, once all events of a notice were heard. */
async function followNotice(id: string): Promise<void> {
  const manager: ProcessManager = processorNotices(app)
  const wanted = new Set<string>()
  for (const stored of await app.log.readStream(`processorNotice-${id}`)) {
    for (const { type, react } of manager.on) {
      if (type.name !== stored.type) continue
      for (const { intent, kind } of react(app.registry.decode(stored), undefined as never)) {
        if (intent === 'perform') wanted.add(kind)
        else wanted.delete(kind)
      }
    }
  }
  for (const kind of wanted) {
    expect(await manager.work[kind]!.run(workItem({ kind, key: id, payload: {} }))).toEqual({
      outcome: 'done',
    })
  }
}

test('a subscription that was started is not refused when its request comes again', async () => {
  const policyId = await issuedPolicy('active')
  await newLink(policyId)
  const input = {
    employer_id: employerId,
    carrier_id: carrierId,
    policy_id: policyId,
    amount_cents: 5_000,
    payment_method_id: 'pm_card_visa',
    metadata: {},
  }
  const start = async (by: Application, context = operatorContext()) => {
    const prepared = accepted(await prepareSubscription(by, client, input, context))
    return startSubscription(by, client, input, prepared, context)
  }
  const context = operatorContext()
  const started = accepted(await start(app, context))
  const live = Object.assign(Object.create(app.processors.live), {
    createSubscription: () => Promise.reject(new ProviderRefused('The card was removed', 'payment_method')),
  })
  const later = { ...app, processors: { ...app.processors, live } }
  expect(await start(later)).toMatchObject({ kind: 'invalid', field: 'payment_method_id' })
  expect(await start(later, context)).toEqual(started)
})
