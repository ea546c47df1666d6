import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { AggregateCache } from '../../../application/commands/aggregates.ts'
import type { Application } from '../../../application/commands/application.ts'
import { CommandHandler } from '../../../application/commands/command-handler.ts'
import { oncePerKey } from '../../../application/commands/keyed-call.ts'
import * as subscriptions from '../../../application/webhooks/subscriptions.ts'
import { isRejection } from '../../../domain/kernel/rejection.ts'
import { PostgresDeliveryRecords } from '../../../infrastructure/webhooks/delivery-records.ts'
import {
  accepted,
  Crashed,
  crashingAt,
  openRegistrationProcesses,
  operatorContext,
  type RegistrationProcess,
  type RegistrationProcesses,
  waitingBefore,
} from '../../support/registrations.ts'
import { shortPauses } from '../../support/short-pauses.ts'
import { localSender, newId } from '../../support/webhooks.ts'

/** Webhook subscriptions where attempts crash, come again, or meet others of another process. */

let processes: RegistrationProcesses
let one: Application
let two: Application
let caller: subscriptions.WebhookCaller

function withWebhooks({ app, bench }: RegistrationProcess): Application {
  const deliveries = new PostgresDeliveryRecords(bench.database.pool)
  return { ...app, webhooks: { sender: localSender(), deliveries } }
}

beforeAll(async () => {
  processes = await openRegistrationProcesses()
  one = withWebhooks(processes.one)
  two = withWebhooks(processes.two)
})
afterAll(() => processes?.close())
beforeEach(() => {
  const scope = { carrier_ids: 'all', employer_ids: 'all' } as const
  caller = { client_id: 'client', tenant_id: newId(), environment: 'live', ...scope }
})

const url = (path = newId()) => `https://127.0.0.1:64999/${path}`

/** Registers an address, as the endpoint does it. */
async function registered(app: Application, to = url(), commandId: string = randomUUID()) {
  const input = { url: to, events: ['payment.completed'] } as const
  const context = operatorContext(commandId)
  const refusal = await subscriptions.refuseRegistration(app, caller, input, context)
  return refusal ?? subscriptions.register(app, caller, input, context)
}

async function made(to = url()): Promise<subscriptions.SubscriptionWithSecret> {
  return accepted(await registered(one, to))
}

/** A registration under an idempotency key, as the endpoint does it. */
function keyed(app: Application, key: string, to: string) {
  const input = { url: to, events: ['payment.completed'] } as const
  const context = operatorContext()
  return oncePerKey(
    app,
    { caller: 'client', operation: 'POST /webhooks', key, sent: to, context },
    {
      prepare: (within) => subscriptions.refuseRegistration(app, caller, input, within),
      async run({ commandId }) {
        const outcome = await registered(app, to, commandId)
        if (isRejection(outcome)) return outcome
        return { status: 201, body: outcome, createdId: outcome.subscription._id }
      },
      secretAnswer: true,
    },
  )
}

describe('a registration', () => {
  test('that was stored and never answered is one: its retry is a conflict that names it', async () => {
    onTestFinished(shortPauses())
    const [to, key] = [url(), randomUUID()]
    const crashing = crashingAt(one, { category: 'webhookSubscriptions', at: 'after' })
    await expect(keyed(crashing, key, to)).rejects.toThrow(Crashed)
    const [stored, ...others] = await subscriptions.list(one, caller)
    expect(others).toEqual([])
    for (const app of [two, one]) {
      expect(await keyed(app, key, to)).toMatchObject({ kind: 'conflict', ids: { id: stored!._id } })
    }
    // the key stays with what it registered
    expect(await keyed(two, key, url())).toMatchObject({ code: 'idempotency_key_reused' })
    expect(await subscriptions.list(two, caller)).toEqual([stored])
  })

  test('that was not stored is made by its retry, whose secret is the one in the vault', async () => {
    onTestFinished(shortPauses())
    const [to, key] = [url(), randomUUID()]
    const crashing = crashingAt(one, { category: 'webhookSubscriptions', at: 'before' })
    await expect(keyed(crashing, key, to)).rejects.toThrow(Crashed)
    const { body } = accepted(await keyed(two, key, to))
    const { subscription, secret } = body as subscriptions.SubscriptionWithSecret
    expect(await one.vault.get(subscription.secret_ref)).toBe(secret)
    expect(await subscriptions.list(one, caller)).toMatchObject([{ _id: subscription._id, url: to }])
  })

  test('that a slow attempt and one that took over make is one', async () => {
    const [to, commandId] = [url(), randomUUID()]
    const late = waitingBefore(one, 'webhookSubscriptions')
    const slow = registered(late.app, to, commandId)
    await late.arrived
    const { subscription, secret } = accepted(await registered(two, to, commandId))
    late.goOn()
    expect(await slow).toMatchObject({ code: 'already_created', ids: { id: subscription._id } })
    expect(await one.vault.get(subscription.secret_ref)).toBe(secret)
    expect(await subscriptions.list(one, caller)).toHaveLength(1)
  })

  test('of one address in two processes at once is one', async () => {
    const to = url()
    const outcomes = await Promise.all(
      Array.from({ length: 12 }, (_, index) => registered(index % 2 === 0 ? one : two, to)),
    )
    const [winner, ...others] = outcomes.filter((outcome) => !isRejection(outcome))
    expect(others).toEqual([])
    const { subscription } = winner as subscriptions.SubscriptionWithSecret
    for (const outcome of outcomes.filter(isRejection)) {
      expect(outcome).toMatchObject({ code: 'url_registered', ids: { id: subscription._id } })
    }
  })

  test('that is refused leaves nothing in the vault', async () => {
    const secrets = async () => {
      const { rows } = await processes.one.bench.database.pool.query(
        'SELECT count(*)::int AS n FROM runtime.secrets',
      )
      return rows[0].n as number
    }
    const { subscription } = await made()
    const before = await secrets()
    for (const to of [subscription.url, 'https://10.0.0.1/']) {
      expect(isRejection(await registered(one, to))).toBe(true)
    }
    expect(await secrets()).toBe(before)
  })
})

test('subscriptions that changed often stay in memory side by side: what they are is small, whatever came before', async () => {
  const { bench } = processes.one
  let reads = 0
  const log = new Proxy(bench.log, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target)
      if (name === 'readStream') reads += 1
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
  const commands = new CommandHandler(log, bench.registry, bench.clock, new AggregateCache(16 * 1024))
  const app = { ...one, commands }
  const callers = [caller, { ...caller, tenant_id: newId() }]
  for (const each of callers) {
    const input = { url: url(), events: ['payment.completed'] } as const
    const { subscription } = accepted(await subscriptions.register(app, each, input, operatorContext()))
    for (let n = 0; n < 24; n += 1) {
      const to = { url: `${url()}/${'x'.repeat(300)}`, events: null, status: null }
      accepted(await subscriptions.change(app, each, subscription._id, to, operatorContext()))
    }
  }
  for (const each of callers) await subscriptions.list(app, each)
  reads = 0
  for (const each of [...callers, ...callers]) await subscriptions.list(app, each)
  expect(reads).toBe(0)
})

test('a rotation that is refused, or comes again, leaves no secret of its own in the vault', async () => {
  const { subscription } = await made()
  const refs = async () => {
    const { rows } = await processes.one.bench.database.pool.query(
      'SELECT ref FROM runtime.secrets WHERE starts_with(ref, $1)',
      [`webhook-subscription/${subscription._id}/`],
    )
    return rows.length
  }
  const context = { ...operatorContext(), mayRepeat: true }
  accepted(await subscriptions.rotate(one, caller, subscription._id, context))
  const before = await refs()
  expect(isRejection(await subscriptions.rotate(two, caller, subscription._id, context))).toBe(true)
  expect(await refs()).toBe(before)
})

describe('the count of failures', () => {
  const fail = async (subscriptionId: string, count: number) => {
    const { pool } = processes.one.bench.database
    const add = 'INSERT INTO webhooks.health (subscription_id, failure_count) VALUES ($1, $2)'
    await pool.query(add, [subscriptionId, count])
  }
  const turn = async (id: string, status: 'active' | 'disabled') =>
    accepted(
      await subscriptions.change(one, caller, id, { url: null, events: null, status }, operatorContext()),
    )

  test('is shown, and is 0 as soon as the subscription is enabled again, with nobody else at work', async () => {
    const { subscription } = await made()
    await fail(subscription._id, 10)
    expect(await turn(subscription._id, 'disabled')).toMatchObject({ status: 'disabled', failure_count: 10 })
    expect(await turn(subscription._id, 'active')).toMatchObject({ status: 'active', failure_count: 0 })
    expect(await subscriptions.list(two, caller)).toMatchObject([{ failure_count: 0 }])
  })

  test('stays where an active subscription is called active', async () => {
    const { subscription } = await made()
    await fail(subscription._id, 3)
    expect(await turn(subscription._id, 'active')).toMatchObject({ status: 'active', failure_count: 3 })
  })
})
