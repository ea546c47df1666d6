import { beforeAll, expect, test } from 'vitest'
import { allEvents, employeeRecord, post, report, reportBody, type ShownEvent } from '../../support/core.ts'
import { callTool, operate, payrollRow, type SeededTenant, seedTenant, sendRpc } from '../../support/seed.ts'
import { type SharedService, sharedService } from '../../support/service.ts'

/** Two persons whose numbers are one number to JSON. */
const TWINS = [
  { id: '9007199254740992', name: 'Ann' },
  { id: '9007199254740993', name: 'Bob' },
]

let service: SharedService
let tenant: SeededTenant

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service)
})

/** JSON of rows or a body, with the ids of the twins as bare numbers. */
function withNumbers(value: unknown): string {
  return JSON.stringify(value).replace(/"#(\d+)"/g, '$1')
}

const employees = TWINS.map(({ id, name }) => employeeRecord({ employee_id: `#${id}`, first_name: name }))
const rows = TWINS.map(({ id, name }) => payrollRow({ employee_id: `#${id}`, employee_first_name: name }))

async function expectRefusedByName(fileId: string): Promise<void> {
  const { result } = await callTool(service, tenant.apiKey, 'get_validation_errors', { file_id: fileId })
  const errors = (result as { errors: { employee_name: string; reasons: { field: string }[] }[] }).errors
  expect(
    errors.map(({ employee_name, reasons }) => [employee_name, reasons.map(({ field }) => field)]),
  ).toEqual([
    ['Ann Baker', ['employee_id']],
    ['Bob Baker', ['employee_id']],
  ])
  const [stored] = (await allEvents(service, 'PayrollFileReceived')).filter(
    ({ data }: ShownEvent) => data.file_id === fileId,
  )
  expect(JSON.stringify(stored)).not.toContain('90071992547409')
}

test('a report tells persons apart whose numbers JSON rounds to one, and erases one of them', async () => {
  const { body } = await post(
    service,
    '/api/v1/payroll/reports',
    tenant.clientHeaders,
    withNumbers(reportBody(tenant, { employees })),
  )
  await expectRefusedByName(body.file_id)

  await operate(service, 'POST', '/erasures', {
    employer_id: tenant.employerId,
    first_name: 'Ann',
    last_name: 'Baker',
  })
  const after = await callTool(service, tenant.apiKey, 'get_validation_errors', { file_id: body.file_id })
  const names = (after.result as { errors: { employee_name: string }[] }).errors
  expect(names.map(({ employee_name }) => employee_name)).toEqual(['(erased)', 'Bob Baker'])
  for (const { id } of TWINS) {
    const erasing = operate(service, 'POST', '/erasures', { employer_id: tenant.employerId, employee_id: id })
    await expect(erasing).rejects.toThrow('404')
  }
  // the same numbers as texts are two persons, and accepted
  const texts = TWINS.map(({ id }) => employeeRecord({ employee_id: id }))
  const accepted = await report(service, tenant, { employees: texts })
  expect(accepted.body.status).toBe('completed')
  for (const { id } of TWINS) {
    await operate(service, 'POST', '/erasures', { employer_id: tenant.employerId, employee_id: id })
  }
})

test.each(['validate_payroll_submission', 'submit_payroll_data'])('%s names the field', async (name) => {
  const given = { employer_id: tenant.employerId, policy_id: tenant.policyId, rows }
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: given } }
  const { body } = await sendRpc(service, tenant.apiKey, withNumbers(call))
  const result = JSON.parse(body.result.content[0].text)
  if (name === 'submit_payroll_data') {
    expect(result.message).toContain('2 failed')
    return
  }
  expect(result.validation.errors).toEqual(
    [1, 2].map((row) => ({
      row,
      field: 'employee_id',
      message: 'employee_id must be a string, or a whole number of at most 2^53 - 1',
    })),
  )
})
