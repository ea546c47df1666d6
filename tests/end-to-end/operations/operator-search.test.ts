import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { achDebitsOf } from '../../support/ach-debits.ts'
import { checkout, checkoutBody } from '../../support/financing.ts'
import { intakeBody, takeIn } from '../../support/intake.ts'
import { enableCheckout } from '../../support/payment-sessions.ts'
import { linkBody, partner } from '../../support/payments.ts'
import {
  askOperator,
  newFein,
  newPolicyNumber,
  operate,
  type SeededTenant,
  seedTenant,
} from '../../support/seed.ts'
import { type SharedService, sharedService } from '../../support/service.ts'

/** What operators find and list of everything that the service keeps. */

type Json = ReturnType<typeof JSON.parse>
let service: SharedService
let tenant: SeededTenant

/** A word that stands in no other tenant's names. */
const word = `x${randomUUID().slice(0, 8)}`
const fein = newFein()
const policyNumber = newPolicyNumber()
const email = `Payer-${word}@Tidewater.example`

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service, {
    employer: { fein, legal_name: `Sierra ${word} Builders LLC`, contact_email: `office@${word}.example` },
    policy: { policy_number: policyNumber },
  })
})

const ops = (path: string) => askOperator(service, 'GET', path)
const list = async (path: string) => (await ops(path)).body
const found = async (q: string): Promise<readonly string[]> => {
  const { body } = await ops(`/search?q=${encodeURIComponent(q)}`)
  return body.data.map(({ kind, id }: Json) => `${kind} ${id}`)
}
const newLink = async (key: string, customer: Json = { name: 'Ada Payer', email }) =>
  partner(service, tenant.clientHeaders, 'POST', '/payment-links', linkBody(tenant, { customer }), key)

describe('a search', () => {
  test('finds an employer by FEIN, id, email address and any word of its legal name', async () => {
    const employer = `employer ${tenant.employerId}`
    for (const q of [
      fein,
      fein.replace('-', ''),
      tenant.employerId,
      `OFFICE@${word}.example`,
      `sierra ${word}`,
      `${word.toUpperCase()} BUILD`,
    ]) {
      expect([q, await found(q)]).toEqual([q, [employer]])
    }
  })

  test('finds a policy by its number, and a key, a carrier and a tenant by their ids', async () => {
    expect(await found(policyNumber.toLowerCase())).toEqual([`policy ${tenant.policyId}`])
    expect(await found(tenant.clientId)).toEqual([`api_client ${tenant.clientId}`])
    expect(await found(tenant.carrierId)).toEqual([`carrier ${tenant.carrierId}`])
    expect(await found(tenant.tenantId)).toEqual([`tenant ${tenant.tenantId}`])
  })

  test('finds a payment link by payer, idempotency key and the processor’s id, and shows nobody', async () => {
    const key = `order-${randomUUID()}`
    const created = await newLink(key)
    const link = `payment_link ${created.body.data._id}`
    const shown = await list(`/payment-links/${created.body.data._id}`)
    expect(shown.data.customer).toEqual({ name: '•••', email: '•••', phone: null })
    for (const q of [email, email.toUpperCase(), key, shown.data.processor_payment_link_id]) {
      expect([q, await found(q)]).toEqual([q, [link]])
    }
    const { text } = await ops(`/search?q=${encodeURIComponent(email)}`)
    expect(text).not.toMatch(/payer|tidewater/i)
    const events = await ops(`/streams/paymentLink-${created.body.data._id}`)
    expect(events.text).not.toMatch(/Ada Payer|tidewater/i)
  })

  test('finds no former address, and none of somebody who was erased', async () => {
    const changed = await seedTenant(service, { employer: { contact_email: `old@${word}.example` } })
    await operate(service, 'PATCH', `/employers/${changed.employerId}`, {
      contact_email: `new@${word}.example`,
      legal_name: `Renamed ${word}`,
    })
    const employer = [`employer ${changed.employerId}`]
    expect(await found(`old@${word}.example`)).toEqual([])
    expect(await found(`new@${word}.example`)).toEqual(employer)
    expect(await found(`renamed ${word}`)).toEqual(employer)
    const { data_subject: subject } = await operate(service, 'GET', `/employers/${changed.employerId}`)
    await operate(service, 'POST', '/erasures', { subject })
    await operate(service, 'POST', '/drain')
    expect(await found(`new@${word}.example`)).toEqual([])
  })

  test.each(['%', '_', "'", '\\', 'q'.repeat(200)])('takes %.20s as it is', async (q) => {
    expect(await found(q)).toEqual([])
  })

  test('of blanks alone is refused by the name of q', async () => {
    const { status, body } = await ops('/search?q=%20%20')
    expect([status, body]).toMatchObject([400, { code: 'field_too_small', field: 'q' }])
  })
})

describe('the lists', () => {
  const OF_TENANT = [
    'carriers',
    'payroll-companies',
    'employers',
    'policies',
    'api-clients',
    'payment-links',
    'inbound-connections',
    'webhook-subscriptions',
  ] as const

  test('show what a tenant has, newest first, in pages, and each thing as it is read by its id', async () => {
    await newLink(randomUUID())
    await operate(service, 'POST', '/inbound-connections', { tenant_id: tenant.tenantId })
    const hook = { url: `https://127.0.0.1:64999/${word}`, events: ['payment.completed'] }
    await partner(service, tenant.clientHeaders, 'POST', '/webhooks', hook)
    for (const plural of OF_TENANT) {
      const { data, pagination } = await list(`/${plural}?tenant_id=${tenant.tenantId}&limit=1`)
      const [first] = data
      expect([plural, data.length, pagination.page]).toEqual([plural, 1, 1])
      expect(first.tenant_id).toBe(tenant.tenantId)
      expect(JSON.stringify(first)).not.toMatch(/secret/)
      const id = first[Object.keys(first)[0]!]
      expect((await list(`/${plural}/${id}`)).data).toEqual(first)
      const none = await list(`/${plural}?tenant_id=${'f'.repeat(24)}`)
      expect([plural, none.data, none.pagination.total]).toEqual([plural, [], 0])
    }
    expect((await list('/tenants?limit=200')).data).toContainEqual({
      tenant_id: tenant.tenantId,
      name: 'Seeded Tenant',
    })
  })

  test('show what else partners and operators made, newest first, and nobody’s name or secret', async () => {
    const made = await seedTenant(service, { environment: 'sandbox' })
    await enableCheckout(service, made)
    const bank = achDebitsOf(service, made)
    const { tenantId: tenant_id, employerId: employer_id, carrierId: carrier_id } = made
    const linking = { user_id: 'Ada Payer', public_token: `public-sandbox-${word}`, employer_id, carrier_id }
    const record = { employer_id, premium_cents: 100, status: 'at_sb' }
    const january = { period_start: '2026-01-01', period_end: '2026-01-31' }
    // of a later period, and recorded earlier
    await bank.ops('/legacy-collections', { ...record, period_start: '2026-02-01', period_end: '2026-02-28' })
    const ids: Record<string, string> = {
      'financing-sessions': (await bank.made(200, checkout(service, made, checkoutBody(made)))).session_id,
      'bank-connections': (await bank.made(201, bank.ask('POST', '/bankconnect/exchange', linking)))._id,
      'debit-collections': '',
      intakes: '',
      'legacy-collections': (await bank.ops('/legacy-collections', { ...record, ...january })).transaction_id,
      'webhook-events': '',
    }
    await bank.made(
      202,
      bank.ask('POST', '/ach/collections', bank.collection(await bank.account(), bank.entry())),
    )
    const body = intakeBody({ carrier_id })
    expect((await takeIn(service, made.clientHeaders, body)).status).toBe(201)
    const link = await partner(service, made.clientHeaders, 'POST', '/payment-links', linkBody(made))
    await partner(
      service,
      made.clientHeaders,
      'POST',
      `/payment-links/${link.body.data._id}/simulate-completion`,
      {},
    )
    await bank.drain()
    for (const [plural, made] of Object.entries(ids)) {
      const { data, pagination } = await list(`/${plural}?tenant_id=${tenant_id}&environment=sandbox&limit=1`)
      const [first] = data
      expect([plural, data.length, pagination.total > 0]).toEqual([plural, 1, true])
      const id = first[Object.keys(first)[0]!]
      if (made !== '') expect([plural, id]).toEqual([plural, made])
      expect((await list(`/${plural}/${id}`)).data).toMatchObject(first)
      expect(JSON.stringify(first)).not.toMatch(/Ada|Wilhelmina|token|hash/)
      const other = await list(`/${plural}?tenant_id=${tenant_id}&employer_id=${'f'.repeat(24)}`)
      expect([plural, other.data]).toEqual([plural, []])
      expect([plural, await found(id)]).toEqual([plural, [expect.stringContaining(id)]])
    }
    expect((await list(`/intakes?tenant_id=${tenant_id}&status=completed`)).pagination.total).toBe(1)
    expect((await list(`/intakes?tenant_id=${tenant_id}&status=unfinished`)).pagination.total).toBe(0)
  })

  test('are narrowed by environment and status', async () => {
    const of = `/api-clients?tenant_id=${tenant.tenantId}`
    const second = await operate(service, 'POST', '/api-clients', {
      tenant_id: tenant.tenantId,
      name: 'Second',
    })
    await operate(service, 'POST', `/api-clients/${second.client_id}/deactivate`)
    expect((await list(`${of}&status=deactivated`)).data).toMatchObject([{ client_id: second.client_id }])
    expect((await list(`${of}&environment=sandbox`)).data).toEqual([])
    const refused = await ops(`${of}&status=off`)
    expect([refused.status, refused.body.field]).toEqual([400, 'status'])
  })

  test.each([
    'payroll-files',
    'payment-sessions',
    'subscriptions',
    'debits',
    'bank-accounts',
    'ach-accounts',
    'bank-connections',
    'debit-collections',
    'financing-sessions',
    'intakes',
    'legacy-collections',
    'processor-notices',
    'webhook-events',
  ])('of %s is empty for a tenant that has none', async (plural) => {
    const { data, pagination } = await list(`/${plural}?tenant_id=${'e'.repeat(24)}&environment=live`)
    expect([data, pagination.total]).toEqual([[], 0])
  })
})
