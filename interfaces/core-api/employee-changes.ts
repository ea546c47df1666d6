import type { ServerResponse } from 'node:http'
import type { Application } from '../../application/application.ts'
import type { CommandContext } from '../../application/command-handling/command-context.ts'
import { createOnce } from '../../application/idempotency/creations.ts'
import { requestHash } from '../../application/idempotency/request-hash.ts'
import {
  checkChangeRecords,
  type EmployeeChangeRecord,
  type EmployeeChanges,
  refuseSync,
  type SyncedEmployees,
  storedSync,
  syncEmployees,
} from '../../application/parties/sync-employees.ts'
import type { ApiClient } from '../../domain/access/api-client.ts'
import { employeeSync } from '../../domain/parties/employee-sync.ts'
import { requestIdOf, sendJson } from '../http/answers.ts'
import { accepted, asHttpError, missingFields, requireSomeEmployees, sendOutcome } from './requests.ts'

/**
 * Checks a sync as a whole, takes it over and answers 202; one bad record refuses it all with
 * `details` of what is wrong where.
 * @throws HttpError 400, 404, 409, 413; ReadModelsLate.
 */
export async function answerSync(
  app: Application,
  client: ApiClient,
  body: Readonly<Record<string, unknown>>,
  key: string | null,
  response: ServerResponse,
): Promise<void> {
  const { employer_id, employees } = body
  const missing: string[] = []
  if (typeof employer_id !== 'string' || employer_id === '') missing.push('employer_id')
  if (!Array.isArray(employees)) missing.push('employees')
  if (missing.length > 0 || !Array.isArray(employees)) throw missingFields(missing)
  requireSomeEmployees(employees)
  const details = await checkChangeRecords(employees)
  if (details.length > 0) {
    sendJson(response, 400, { error: 'Invalid employee record', message: details[0]!.message, details })
    return
  }

  const sync: EmployeeChanges = {
    senderId: client.client_id,
    tenantId: client.tenant_id,
    environment: client.environment,
    employerId: employer_id as string,
    records: employees as readonly EmployeeChangeRecord[],
  }
  const context = {
    actor: { type: 'api_client' as const, id: client.client_id },
    tenantId: client.tenant_id,
    environment: client.environment,
    correlationId: requestIdOf(response),
  }
  const check = async (): Promise<void> => {
    const refusal = await refuseSync(app, client, sync.employerId)
    if (refusal) throw asHttpError(refusal)
  }
  const take = (within: CommandContext) => syncEmployees(app, sync, within)
  const answer = ({ syncId, fileId }: SyncedEmployees) => ({
    message: `${sync.records.length} employee ${sync.records.length === 1 ? 'change' : 'changes'} accepted`,
    sync_id: syncId,
    file_id: fileId,
    environment: sync.environment,
    employer_id: sync.employerId,
    employees_processed: sync.records.length,
    status: 'processing',
  })

  if (key === null) {
    await check()
    sendJson(response, 202, answer(await take({ ...context, commandId: app.randomness.commandId() })))
    return
  }
  const outcome = await createOnce(
    app,
    {
      caller: client.client_id,
      operation: 'employee sync',
      key,
      requestHash: await requestHash(body),
      context,
    },
    {
      decider: employeeSync,
      create: async (within, begun) => {
        if (begun === null) await check()
        return { status: 202, body: answer(await take(within)) }
      },
      answerOf: async ({ state }) => {
        const stored = await storedSync(app, state)
        return stored && { status: 202, body: answer(stored) }
      },
    },
  )
  sendOutcome(response, accepted(outcome))
}
