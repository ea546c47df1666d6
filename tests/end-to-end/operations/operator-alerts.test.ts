import { beforeAll, describe, expect, test } from 'vitest'
import { serviceTime } from '../../support/core.ts'
import { intakeBody, newClient, payFor, takeIn } from '../../support/intake.ts'
import {
  type Answer,
  askOperator,
  newPolicyNumber,
  operate,
  type SeededTenant,
  seedTenant,
  send,
} from '../../support/seed.ts'
import { type SharedService, sharedService } from '../../support/service.ts'

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
})
