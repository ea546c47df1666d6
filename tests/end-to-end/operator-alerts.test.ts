import { beforeAll, describe, expect, test } from 'vitest'
import { serviceTime } from '../support/core.ts'
import { intakeBody, newClient, payFor, payInFull, takeIn } from '../support/intake.ts'
import {
  type Answer,
  askOperator,
  newPolicyNumber,
  operate,
  type SeededTenant,
  seedTenant,
  send,
} from '../support/seed.ts'
import { type SharedService, sharedService } from '../support/service.ts'
import { type Receiver, startReceiver } from '../support/webhook-receiver.ts'

let service: SharedService
let tenant: SeededTenant
let headers: Record<string, string>

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service, { environment: 'sandbox' })
  const scope = { environment: 'sandbox', carrier_ids: [tenant.carrierId] }
  headers = (await newClient(service, tenant.tenantId, scope)).headers
})

const ops = (path: string, method = 'GET', body?: unknown): Promise<Answer> =>
  askOperator(service, method, path, body)
const alerts = (query = '') => operate(service, 'GET', `/alerts?tenant_id=${tenant.tenantId}${query}`)
const policyOf = (id: string) => operate(service, 'GET', `/policies/${id}`)
const inProgress = async (policy: Readonly<Record<string, unknown>> = {}) => {
  const answer = await takeIn(service, headers, intakeBody({ policy }))
  return answer.body.data as { employer_id: string; policy_id: string }
}
const openOf = async (kind: string) => {
  const { text } = await send(`${service.opsUrl}/metrics`)
  return Number(new RegExp(`^compstream_operator_alerts_open{kind="${kind}"} (\\d+)$`, 'm').exec(text)?.[1])
}

describe('a policy that is paid for', () => {
  test('is active when the payment is answered', async () => {
    const ids = await inProgress()
    await payFor(service, headers, ids)
    const { type } = (await operate(service, 'GET', `/streams/policy-${ids.policy_id}`)).at(-1)
    expect(type).toBe('PolicyActivated')
  })

  test('and cancelled before stays so; the payment counts, and the operator is told', async () => {
    const before = await openOf('policy_not_activated')
    const ids = await inProgress()
    const cancel = () => operate(service, 'POST', `/policies/${ids.policy_id}/cancel`, {})
    const linkId = await payFor(service, headers, ids, cancel)
    expect((await policyOf(ids.policy_id)).status).toBe('cancelled')
    const link = await send(`${service.paymentsUrl}/api/v1/payment-links/${linkId}`, { headers })
    expect(link.body.data.status).toBe('paid')
    // what works in the background finds the same, and says it once
    await operate(service, 'POST', '/drain')
    const about = (await alerts()).filter(
      (one: { about: { policy_id?: string } }) => one.about.policy_id === ids.policy_id,
    )
    expect(about).toEqual([
      {
        alert_id: expect.stringMatching(/^[0-9a-f]{24}$/),
        kind: 'policy_not_activated',
        message: expect.stringContaining('paid'),
        tenant_id: tenant.tenantId,
        environment: 'sandbox',
        about: { policy_id: ids.policy_id },
        raised_at: expect.stringMatching(/^\d{4}-.*Z$/),
        count: 1,
        status: 'open',
        acknowledged_at: null,
        acknowledged_by: null,
        note: null,
      },
    ])
    expect(await openOf('policy_not_activated')).toBe(before + 1)
  })

  test('whose number is taken waits until an operator frees the number and activates it', async () => {
    const policy_number = newPolicyNumber()
    const effective_date = new Date(await serviceTime(service)).toISOString().slice(0, 10)
    const first = await inProgress({ policy_number, effective_date })
    const second = await inProgress({ policy_number, effective_date })
    await payFor(service, headers, first)
    await payFor(service, headers, second)
    await operate(service, 'POST', '/drain')
    const statuses = async () =>
      Promise.all([first, second].map(async ({ policy_id }) => (await policyOf(policy_id)).status))
    expect(await statuses()).toEqual(['active', 'in_progress'])
    const [alert, ...others] = (await alerts('&status=open')).filter(
      (one: { about: { policy_id?: string } }) => one.about.policy_id === second.policy_id,
    )
    expect(others).toEqual([])
    expect(alert.about).toEqual({ policy_id: second.policy_id, holder_policy_id: first.policy_id })

    expect((await ops(`/policies/${second.policy_id}/activate`, 'POST')).status).toBe(409)
    await operate(service, 'POST', `/policies/${first.policy_id}/cancel`, {})
    expect((await operate(service, 'POST', `/policies/${second.policy_id}/activate`)).status).toBe('active')
    expect(await statuses()).toEqual(['cancelled', 'active'])
    expect((await operate(service, 'GET', `/alerts/${alert.alert_id}`)).status).toBe('open')
  })
})

describe('a webhook receiver that never accepts', () => {
  const subscribe = async (receiver: Receiver, events: readonly string[]): Promise<string> => {
    const body = { url: `${receiver.url}/${Date.now()}`, events }
    const answer = await send(`${service.paymentsUrl}/api/v1/webhooks`, { method: 'POST', headers, body })
    expect(answer.status).toBe(201)
    return answer.body.data.id
  }
  const advance = async (seconds: number) => {
    await operate(service, 'POST', '/clock/advance', { seconds })
    await operate(service, 'POST', '/drain')
  }
  const newLink = async () => {
    const body = payInFull(await inProgress())
    const created = await send(`${service.paymentsUrl}/api/v1/payment-links`, {
      method: 'POST',
      headers,
      body,
    })
    return created.body.data._id as string
  }
  const decline = async (linkId: string) => {
    const path = `/api/v1/sandbox/payment-links/${linkId}/fail`
    expect((await send(service.paymentsUrl + path, { method: 'POST', headers, body: {} })).status).toBe(200)
  }

  test('raises an alert for each event that is dropped after 48 hours', async () => {
    const receiver = await startReceiver()
    receiver.answerWith(500)
    try {
      const subscription_id = await subscribe(receiver, ['payment.failed'])
      await decline(await newLink())
      await operate(service, 'POST', '/drain')
      await advance(47 * 3600)
      expect(await alerts('&kind=webhook_delivery_dropped')).toEqual([])
      await advance(3 * 3600)
      const [alert, ...others] = await alerts('&kind=webhook_delivery_dropped')
      expect(others).toEqual([])
      const { event_id, delivery_id } = alert.about
      expect(alert).toMatchObject({
        tenant_id: tenant.tenantId,
        environment: 'sandbox',
        status: 'open',
        about: { subscription_id, event_id, delivery_id },
      })
      expect(receiver.requests[0]!.headers['x-webhook-id']).toBe(event_id)
      const remove = `${service.paymentsUrl}/api/v1/webhooks/${subscription_id}`
      await send(remove, { method: 'DELETE', headers })
    } finally {
      await receiver.stop()
    }
  })

  test('raises one when its subscription is disabled for ten events that failed; a partner that disables it does not', async () => {
    const receiver = await startReceiver()
    receiver.answerWith(503)
    try {
      const subscription_id = await subscribe(receiver, ['payment.failed'])
      const linkId = await newLink()
      for (let event = 0; event < 10; event += 1) await decline(linkId)
      await operate(service, 'POST', '/drain')
      for (const seconds of [1, 5, 25, 125, 60]) await advance(seconds)
      const disabled = await alerts('&kind=webhook_subscription_disabled')
      expect(disabled.map(({ about }: { about: unknown }) => about)).toEqual([{ subscription_id }])
      const patch = (status: string) =>
        send(`${service.paymentsUrl}/api/v1/webhooks/${subscription_id}`, {
          method: 'PATCH',
          headers,
          body: { status },
        })
      expect((await patch('active')).status).toBe(200)
      expect((await patch('disabled')).status).toBe(200)
      expect(await alerts('&kind=webhook_subscription_disabled')).toHaveLength(1)
    } finally {
      await receiver.stop()
    }
  })
})

describe('alerts', () => {
  const raised = async () => {
    const ids = await inProgress()
    await payFor(service, headers, ids, () =>
      operate(service, 'POST', `/policies/${ids.policy_id}/cancel`, {}),
    )
    return (await alerts('&limit=1'))[0]
  }

  test('are acknowledged once: who was first, when, and a note stay', async () => {
    const { alert_id } = await raised()
    const before = await openOf('policy_not_activated')
    const noted = await operate(service, 'POST', `/alerts/${alert_id}/acknowledge`, {
      note: 'refund is under way',
    })
    expect(noted).toMatchObject({
      alert_id,
      status: 'acknowledged',
      acknowledged_by: 'operator',
      note: 'refund is under way',
      acknowledged_at: expect.stringMatching(/^\d{4}-.*Z$/),
    })
    expect(await operate(service, 'POST', `/alerts/${alert_id}/acknowledge`)).toEqual(noted)
    expect(await operate(service, 'POST', `/alerts/${alert_id}/acknowledge`, { note: 'me, too' })).toEqual(
      noted,
    )
    expect(await operate(service, 'GET', `/alerts/${alert_id}`)).toEqual(noted)
    const events = await operate(service, 'GET', `/streams/operatorAlert-${alert_id}`)
    expect(events).toMatchObject([
      { type: 'OperatorAlertAcknowledged', data: { alert_id }, metadata: { actor: { type: 'operator' } } },
    ])
    expect(await openOf('policy_not_activated')).toBe(before - 1)
  })

  test('are listed newest first, by page, kind, tenant, environment and status', async () => {
    const older = await raised()
    const newer = await raised()
    await operate(service, 'POST', `/alerts/${older.alert_id}/acknowledge`)
    const ids = async (query: string) =>
      (await alerts(query)).map(({ alert_id }: { alert_id: string }) => alert_id)
    expect((await ids('')).slice(0, 2)).toEqual([newer.alert_id, older.alert_id])
    expect(await ids('&limit=1&page=2')).toEqual([older.alert_id])
    expect((await ids('&status=open'))[0]).toBe(newer.alert_id)
    expect(await ids('&status=open')).not.toContain(older.alert_id)
    expect((await ids('&status=acknowledged'))[0]).toBe(older.alert_id)
    const paid = await ids('&kind=policy_not_activated')
    expect(paid.slice(0, 2)).toEqual([newer.alert_id, older.alert_id])
    expect(await ids('&kind=webhook_delivery_dropped')).not.toContain(newer.alert_id)
    expect(await ids('&environment=live')).toEqual([])
    expect(await ids('&environment=sandbox')).toEqual(await ids(''))
    const elsewhere = await operate(service, 'GET', `/alerts?tenant_id=${'f'.repeat(24)}`)
    expect(elsewhere).toEqual([])
    const { pagination } = (await ops(`/alerts?tenant_id=${tenant.tenantId}&limit=1`)).body
    expect(pagination).toMatchObject({ page: 1, limit: 1, has_more: true, total: (await ids('')).length })
  })

  test.each([
    [`/alerts/${'f'.repeat(24)}`, 'GET', 404],
    ['/alerts/nonsense', 'GET', 404],
    [`/alerts/${'f'.repeat(24)}/acknowledge`, 'POST', 404],
  ])('%s (%s) is %i', async (path, method, status) => {
    expect((await ops(path, method, method === 'POST' ? {} : undefined)).status).toBe(status)
    if (status === 404) return
    expect((await send(`${service.opsUrl}/ops/v1${path}`, { method })).status).toBe(401)
  })

  test('stay what they were when their read model is built anew', async () => {
    const { alert_id } = await raised()
    await operate(service, 'POST', `/alerts/${alert_id}/acknowledge`, { note: 'before' })
    const before = await alerts()
    await operate(service, 'POST', '/projections/operator-alerts/rebuild', { switch: 'auto' })
    await operate(service, 'POST', '/drain')
    await expect
      .poll(async () => (await operate(service, 'GET', '/projections/operator-alerts')).rebuild ?? null)
      .toBeNull()
    expect(await alerts()).toEqual(before)
  })
})
