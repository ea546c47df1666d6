import type { ApiClient } from '../../domain/access/api-client.ts'
import { isCalendarDate } from '../../domain/kernel/calendar.ts'
import type { Environment } from '../../domain/kernel/ids.ts'
import { type Rejection, reject } from '../../domain/kernel/rejection.ts'
import {
  type EmployeeChange,
  EmployeeChangesRecorded,
  type EmployeeSync,
  type EmployeeSyncCommand,
  employeeSync,
} from '../../domain/parties/employee-sync.ts'
import { CHUNK_BYTES, CHUNK_ROWS } from '../../domain/payroll/payroll-file.ts'
import { LOST } from '../../domain/payroll/payroll-row.ts'
import { employerOfClient } from '../access/client-scope.ts'
import type { Application } from '../commands/application.ts'
import { type CommandContext, createdId } from '../commands/command-context.ts'
import type { Reads } from '../commands/command-handler.ts'
import { derivedId } from '../commands/event-registry.ts'
import { isRowTooLarge, MAX_ROW_BYTES } from '../commands/row-size.ts'
import { personSubject, sealFields } from '../commands/sealing.ts'
import { inTimeSlices, TimeSlice } from '../commands/time-slices.ts'
import { uploadChunks } from '../commands/upload-chunks.ts'

/** Faults that an answer lists at the most. */
const MAX_LISTED_FAULTS = 100
/** Longest identifier of an employee, in characters. */
const MAX_EMPLOYEE_ID = 255

/** A change record of the right shape. */
export interface EmployeeChangeRecord extends Record<string, unknown> {
  readonly employee_id: string
  readonly action: EmployeeChange['action']
}

/** What is wrong with one record. */
interface RecordFault {
  /** 0-based place in `employees`. */
  readonly index: number
  readonly field: string
  readonly message: string
}

/** A checked sync and its sender. */
export interface EmployeeChanges {
  readonly sender_id: string
  readonly tenant_id: string
  readonly environment: Environment
  readonly employer_id: string
  readonly records: readonly EmployeeChangeRecord[]
}

export interface SyncedEmployees {
  readonly sync_id: string
  readonly file_id: string
}

/**
 * Checks all records of a sync; the first faults are listed.
 * @returns an empty list when all records are {@link EmployeeChangeRecord}s.
 */
export async function checkChangeRecords(records: readonly unknown[]): Promise<readonly RecordFault[]> {
  const faults: RecordFault[] = []
  await inTimeSlices(records, (record, index) => {
    if (faults.length === MAX_LISTED_FAULTS) return
    for (const [field, what] of faultsOf(record).slice(0, MAX_LISTED_FAULTS - faults.length)) {
      const at = field === '' ? `employees[${index}]` : `employees[${index}].${field}`
      faults.push({ index, field: field === '' ? 'employees' : field, message: `${at} ${what}` })
    }
  })
  return faults
}

const ACTIONS: readonly unknown[] = ['hire', 'terminate', 'update']
const DATE = 'must be an existing date in the form YYYY-MM-DD'

/** Pairs of field and what is wrong with it; the field is empty where the record as a whole is at fault. */
function faultsOf(value: unknown): (readonly [string, string])[] {
  if (!isObject(value)) return [['', 'must be an object']]
  if (isRowTooLarge(value)) return [['', `is larger than ${MAX_ROW_BYTES / 1024} KiB`]]
  const faults: (readonly [string, string])[] = []
  const { employee_id, action } = value
  if (isMissing(employee_id)) faults.push(['employee_id', 'is required'])
  else if (typeof employee_id !== 'string') faults.push(['employee_id', 'must be a string'])
  else if (employee_id.length > MAX_EMPLOYEE_ID) {
    faults.push(['employee_id', `must not be longer than ${MAX_EMPLOYEE_ID} characters`])
  } else if (employee_id.includes(LOST)) {
    faults.push(['employee_id', 'holds U+FFFD, which stands for characters that were lost'])
  }
  if (isMissing(action)) faults.push(['action', 'is required: hire, terminate or update'])
  else if (!ACTIONS.includes(action)) faults.push(['action', 'must be hire, terminate or update'])

  if (action === 'hire') {
    if (isMissing(value.name)) faults.push(['name', 'is required for the action hire'])
    else if (typeof value.name !== 'string') faults.push(['name', 'must be a string'])
  }
  for (const [field, needs] of [
    ['hire_date', 'hire'],
    ['termination_date', 'terminate'],
  ] as const) {
    const date = value[field]
    if (action === needs && isMissing(date)) faults.push([field, `is required for the action ${needs}`])
    else if (date !== undefined && date !== null && !isCalendarDate(date)) faults.push([field, DATE])
  }
  if (action === 'update' && Object.keys(value).every((key) => key === 'employee_id' || key === 'action')) {
    faults.push(['', 'must carry at least one changed field for the action update'])
  }
  const refused = new Set(faults.map(([field]) => field))
  for (const key of Object.keys(value)) {
    if (refused.has(key) || !holdsInexact(value[key])) continue
    faults.push([shortened(key), 'holds a number beyond 2^53 - 1, which is not kept exactly; send a string'])
  }
  return faults
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isMissing(value: unknown): boolean {
  return value === undefined || value === null || (typeof value === 'string' && value.trim() === '')
}

/** Numbers beyond the safe integers were rounded when they were read, and those beyond a double read as infinite. */
function holdsInexact(value: unknown): boolean {
  if (typeof value === 'number') return !(Math.abs(value) <= Number.MAX_SAFE_INTEGER)
  return typeof value === 'object' && value !== null && Object.values(value).some(holdsInexact)
}

function shortened(key: string): string {
  return key.length > 60 ? `${key.slice(0, 59)}…` : key
}

/**
 * Whether a client may report changes of an employer; what lies outside its tenant, environment,
 * employers or carriers is not found.
 * @returns a rejection, or null when it may.
 * @throws ReadModelsLate when that cannot be told yet.
 */
export async function refuseSync(
  app: Application,
  client: ApiClient,
  employerId: string,
): Promise<Rejection | null> {
  return (await employerOfClient(app, client, employerId))
    ? null
    : reject('not_found', 'employer_not_found', 'No employer has this employer_id', 'employer_id')
}

/**
 * Records hires, terminations and updates of one employer. Every record is sealed under its person's
 * data key; large syncs stand in chunks. Ids derive from the context's command id, so that a retry
 * under the same command id goes on where the first attempt ended. Returns when the read models tell.
 */
export async function syncEmployees(
  app: Application,
  { records, ...sync }: EmployeeChanges,
  context: CommandContext,
): Promise<SyncedEmployees> {
  const file_id = createdId(context, employeeSync)
  const ids = { file_id, sync_id: derivedId(file_id, 'sync') }
  const chunks = await chunksOf(app, { ...sync, records }, file_id)
  const data = { ...ids, ...sync, record_count: records.length, chunk_count: chunks.length }
  const receive = { type: 'Receive', data } as const

  const at = await uploadChunks(app, employeeSync, file_id, receive, chunks, context)
  await app.readModels.awaitProjections(employeeSync, at.position)
  return ids
}

/** The sync that an earlier attempt began, null while some of its records are missing. */
export async function storedSync(
  { commands }: Reads,
  begun: Pick<EmployeeSync, 'received'>,
): Promise<SyncedEmployees | null> {
  const { file_id, sync_id } = begun.received!
  const { received, chunks_recorded } = (await commands.load(employeeSync, file_id)).state
  return chunks_recorded === received?.chunk_count ? { sync_id, file_id } : null
}

/** A record as it will be sealed. */
interface Plain {
  readonly record: EmployeeChangeRecord
  readonly plaintext: string
}

/** Bytes of a change's JSON beside the record's ciphertext, about. */
const CHANGE_OVERHEAD_BYTES = 250

/** Cuts the records into chunks and seals these, one after another so that others get a turn. */
async function chunksOf(
  app: Application,
  sync: EmployeeChanges,
  fileId: string,
): Promise<EmployeeSyncCommand[]> {
  const chunks: EmployeeSyncCommand[] = []
  let plain: Plain[] = []
  let bytes = 0
  const close = async () => {
    const changes = await sealChunk(app, sync.employer_id, fileId, chunks.length, plain)
    chunks.push({ type: 'RecordChanges', changes })
    plain = []
    bytes = 0
  }
  const slice = new TimeSlice()
  for (const record of sync.records) {
    const plaintext = JSON.stringify(record)
    // what a record is bound to names its place, so chunks are cut by the size that sealing will give
    const size = CHANGE_OVERHEAD_BYTES + Math.ceil((Buffer.byteLength(plaintext) * 4) / 3)
    if (plain.length > 0 && (plain.length === CHUNK_ROWS || bytes + size > CHUNK_BYTES)) {
      await close()
      await slice.over()
    }
    plain.push({ record, plaintext })
    bytes += size
  }
  await close()
  return chunks
}

async function sealChunk(
  app: Application,
  employerId: string,
  fileId: string,
  chunk: number,
  plain: readonly Plain[],
): Promise<readonly EmployeeChange[]> {
  const drafts = plain.map(({ record, plaintext }) => ({
    subject: personSubject(app.personalData, employerId, `employee_id:${record.employee_id.trim()}`),
    action: record.action,
    record: plaintext,
    effective_date: effectiveDate(record),
  }))
  const draft = { file_id: fileId, chunk, changes: drafts }
  const { changes } = await sealFields(
    app.personalData,
    EmployeeChangesRecorded,
    draft,
    ({ path }) => drafts[Number(path[1])]!.subject,
  )
  return changes
}

function effectiveDate(record: EmployeeChangeRecord): string | null {
  const date =
    record.action === 'hire'
      ? record.hire_date
      : record.action === 'terminate'
        ? record.termination_date
        : null
  return typeof date === 'string' ? date : null
}
