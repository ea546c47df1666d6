import { z } from 'zod'
import { newContext } from '../../../application/commands/command-context.ts'
import { oncePerKey } from '../../../application/commands/keyed-call.ts'
import {
  checkChangeRecords,
  type EmployeeChangeRecord,
  type EmployeeChanges,
  refuseSync,
  type SyncedEmployees,
  storedSync,
  syncEmployees,
} from '../../../application/parties/sync-employees.ts'
import { MAX_ROWS } from '../../../application/payroll/submit-payroll.ts'
import { employeeSync } from '../../../domain/parties/employee-sync.ts'
import { accepted } from '../../endpoints/endpoint.ts'
import { machineReadable } from '../../endpoints/error-codes.ts'
import { MOST_NAMED, REQUIRED } from '../../endpoints/faults.ts'
import { date, rows, visible } from '../../endpoints/fields.ts'
import { HttpError } from '../../http/errors.ts'
import { answered, endpoint } from '../host/api.ts'
import { rowsOf } from '../payroll/payroll-reports.ts'

const record = { employee_id: visible().max(255).describe("The caller's own identifier of the person") }
const given = { hire_date: date().nullish(), termination_date: date().nullish() }

const ChangeRecord = z
  .discriminatedUnion('action', [
    z.looseObject({ ...record, action: z.literal('hire'), name: visible(), ...given, hire_date: date() }),
    z.looseObject({ ...record, action: z.literal('terminate'), ...given, termination_date: date() }),
    z
      .looseObject({ ...record, action: z.literal('update'), ...given })
      .meta({ minProperties: 3, description: 'With at least one further field' }),
  ])
  .meta({
    id: 'EmployeeChange',
    description:
      'Further fields are kept. Numbers may be up to 2^53 - 1; send longer ones as strings. 32 KiB at the most',
  })

const SyncAnswer = z
  .object({
    message: z.string(),
    sync_id: z.string(),
    file_id: z.string(),
    environment: z.string(),
    employer_id: z.string(),
    employees_processed: z.int(),
    status: z.literal('processing'),
  })
  .meta({ id: 'EmployeeSync' })
type SyncAnswer = z.input<typeof SyncAnswer>

const InvalidRecords = z
  .object({
    error: z.string(),
    message: z.string(),
    ...machineReadable,
    details: z
      .array(z.object({ index: z.int(), field: z.string(), message: z.string() }))
      .readonly()
      .optional(),
  })
  .meta({ id: 'InvalidRecords' })

export const syncEmployeesEndpoint = endpoint({
  operation: 'syncEmployees',
  route: 'POST /employees/sync',
  summary: 'Report hires, terminations and changes of employees',
  description:
    'Taken over as a whole: one bad record refuses all of them, with `details` of what is wrong where.',
  body: z
    .object({ employer_id: z.string().min(1, REQUIRED), employees: rows(ChangeRecord, MAX_ROWS) })
    .meta({ id: 'EmployeeChanges' }),
  rows: rowsOf,
  idempotent: 'The same key and body get the first answer again; another body is 409',
  example: {
    employer_id: '66838f2a5b1c4d7e9f012345',
    employees: [{ employee_id: 'E-1001', action: 'hire', name: 'Ann Lee', hire_date: '2026-06-16' }],
  },
  answers: { 202: SyncAnswer, 400: InvalidRecords },
  errors: {
    404: 'There is no such employer within the client’s scope',
    409: 'The key was used for another body',
    413: 'Too many records, or too large a body',
  },
  refuses: { 404: ['employer_not_found'] },
  async handle({ host: { app }, caller: { client }, body, sent, key, unlessRepeated, requestId }) {
    const details = await checkChangeRecords(body.employees)
    if (details.length > 0) {
      const errors = details.slice(0, MOST_NAMED).map(({ index, field, message }) => {
        const record = `employees[${index}]`
        return {
          code: 'field_invalid' as const,
          field: field === 'employees' ? record : `${record}.${field}`,
          message,
        }
      })
      const { code, field, message } = errors[0]!
      throw new HttpError(400, 'Invalid employee record', message, {
        code,
        field,
        errors,
        details: { details },
      })
    }
    const { client_id: sender_id, tenant_id, environment } = client
    const { employer_id } = body
    const sync: EmployeeChanges = {
      sender_id,
      tenant_id,
      environment,
      employer_id,
      records: body.employees as readonly EmployeeChangeRecord[],
    }
    const context = {
      ...newContext(app, { type: 'api_client', id: sender_id }, requestId, client),
      unlessRepeated,
    }
    const answer = (ids: SyncedEmployees): SyncAnswer => ({
      message: `${sync.records.length} employee ${sync.records.length === 1 ? 'change' : 'changes'} accepted`,
      ...ids,
      environment,
      employer_id,
      employees_processed: sync.records.length,
      status: 'processing',
    })

    const outcome = await oncePerKey(
      app,
      { caller: sender_id, operation: 'employee sync', key, sent, context },
      {
        prepare: async ({ mayRepeat }) => (mayRepeat ? null : refuseSync(app, client, employer_id)),
        run: async (within) => ({ status: 202, body: answer(await syncEmployees(app, sync, within)) }),
        creates: {
          decider: employeeSync,
          async answerOf({ state }) {
            const stored = await storedSync(app, state)
            return stored && { status: 202, body: answer(stored) }
          },
        },
      },
    )
    return answered(202, accepted(outcome))
  },
})
