import { afterAll, beforeAll, expect, test } from 'vitest'
import { achDebitsOf } from '../../support/ach-debits.ts'
import { employeeRecord, report } from '../../support/core.ts'
import { askOperator, operate, type SeededTenant, seedTenant } from '../../support/seed.ts'
import { type RunningService, startService } from '../../support/service.ts'

let service: RunningService
let seeded: SeededTenant
let other: { readonly operator_id: string; readonly token: string }

beforeAll(async () => {
  service = await startService({ env: { SECOND_OPERATOR: 'on' } })
  seeded = await seedTenant(service)
  other = await operate(service, 'POST', '/operators', { name: 'Kim', role: 'operator' })
})
afterAll(() => service?.stop())

const fein = async () => (await operate(service, 'GET', `/employers/${seeded.employerId}`)).fein
const subject = async () => (await operate(service, 'GET', `/employers/${seeded.employerId}`)).data_subject
const approve = (token: string, id: string) =>
  askOperator({ ...service, operatorToken: token }, 'POST', `/pending-actions/${id}/approve`)

test('an erasure waits for a second operator, who is not the one that asked for it', async () => {
  const body = { subject: await subject(), reason: 'Case 7' }
  const asked = await askOperator(service, 'POST', '/erasures', body)
  expect([asked.status, asked.body.data]).toEqual([
    202,
    expect.objectContaining({
      operation: 'erase',
      targets: [body.subject],
      requested_by: 'operator',
      approved_by: null,
      declined: null,
    }),
  ])
  const { action_id } = asked.body.data
  expect(await operate(service, 'GET', '/pending-actions')).toEqual([asked.body.data])

  const own = await approve(service.operatorToken, action_id)
  expect([own.status, own.body.code]).toEqual([409, 'second_operator_required'])
  expect(await fein()).toBe(seeded.fein)

  const approved = await approve(other.token, action_id)
  expect([approved.status, approved.body.data]).toEqual([
    200,
    { ...asked.body.data, approved_by: other.operator_id },
  ])
  expect(await fein()).toBe('(erased)')
  expect(await operate(service, 'GET', '/pending-actions')).toEqual([])
  const [{ data, metadata }] = await operate(service, 'GET', '/events?type=PersonalDataErased')
  expect([data.reason, metadata.actor]).toEqual(['Case 7', { type: 'operator', id: other.operator_id }])
})

test.each(['/debits/ffffffffffffffffffffffff/release', '/bank-files/ffffffffffffffffffffffff/expose-again'])(
  'nothing waits for %s that is unknown',
  async (path) => {
    expect((await askOperator(service, 'POST', path, {})).status).toBe(404)
    expect(
      (await askOperator(service, 'POST', '/erasures', { subject: `person/${'f'.repeat(24)}` })).status,
    ).toBe(404)
  },
)

test.each([
  ['declined by another operator', false],
  ['withdrawn by who asked for it', true],
])('what is %s for a reason is never carried out', async (_what, isOwn) => {
  const asked = await askOperator(service, 'POST', '/erasures', { subject: await subject() })
  const { action_id } = asked.body.data
  const by = isOwn ? { operator_id: 'operator', token: service.operatorToken } : other
  const decline = (sent: object) =>
    askOperator(
      { ...service, operatorToken: by.token },
      'POST',
      `/pending-actions/${action_id}/decline`,
      sent,
    )
  const without = await decline({})
  expect([without.status, without.body.field]).toEqual([400, 'reason'])
  const answer = await decline({ reason: 'Wrong person' })
  expect([answer.status, answer.body.data.declined]).toEqual([
    200,
    { declined_by: by.operator_id, reason: 'Wrong person' },
  ])
  expect(await operate(service, 'GET', '/pending-actions')).toEqual([])
  const late = await approve(other.token, action_id)
  expect([late.status, late.body.code]).toEqual([409, 'action_declined'])
})

test('what was approved is carried out once: approving again leaves alone what was reported since', async () => {
  const employees = [employeeRecord({ employee_id: 'E-77', first_name: 'Jo', last_name: 'Doe' })]
  const person = { employer_id: seeded.employerId, employee_id: 'E-77' }
  const keys = async () =>
    (await askOperator(service, 'POST', '/erasures', { ...person, dry_run: true })).body.data.data_keys
  await report(service, seeded, { employees })
  const { body } = await askOperator(service, 'POST', '/erasures', person)
  expect((await approve(other.token, body.data.action_id)).status).toBe(200)
  expect(await keys()).toBe(0)
  await report(service, seeded, { employees })
  expect(await keys()).toBe(1)
  expect((await approve(other.token, body.data.action_id)).status).toBe(200)
  expect(await keys()).toBe(1)
})

test('what the present state does not allow does not wait', async () => {
  const { account, debit, made, ask } = achDebitsOf(service, seeded)
  const { transaction_id } = await made(201, ask('POST', '/ach/debits', debit(await account())))
  const refused = await askOperator(service, 'POST', `/debits/${transaction_id}/release`, {
    note: 'Looked at',
  })
  expect(refused.status).toBe(409)
  expect(await operate(service, 'GET', '/pending-actions')).toEqual([])
})

test('what waits has expired after 24 hours', async () => {
  const asked = await askOperator(service, 'POST', '/erasures', { subject: await subject() })
  await operate(service, 'POST', '/clock/advance', { seconds: 24 * 60 * 60 })
  const late = await approve(other.token, asked.body.data.action_id)
  expect([late.status, late.body.code]).toEqual([404, 'pending_action_not_found'])
})
