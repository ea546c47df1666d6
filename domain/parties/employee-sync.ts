import { z } from 'zod'
import type { Decider } from '../kernel/decider.ts'
import { type EventOf, eventType } from '../kernel/event-type.ts'
import { environment, id } from '../kernel/ids.ts'
import { type Rejection, reject } from '../kernel/rejection.ts'
import { sealContext, sealed } from '../kernel/sealed.ts'

/**
 * One employee sync: hires, terminations and updates of one employer, as reported. The employee
 * register is the projection of these facts. Large syncs stand in chunks, as payroll files do.
 */
const employeeChange = z.object({
  /** The person's data subject id; the same person of the same employer always has the same one. */
  subject: z.string(),
  action: z.enum(['hire', 'terminate', 'update']),
  /** JSON of the whole change record as it came, sealed under the person's data key. */
  record: sealed({
    subject: 'person',
    boundTo: ({ data, path }) =>
      sealContext(
        `employeeSync-${data.file_id}`,
        'EmployeeChangesRecorded',
        changeRecordField(Number(data.chunk), Number(path[1])),
      ),
  }),
  /** `hire_date` or `termination_date`, YYYY-MM-DD. */
  effective_date: z.string().nullable(),
})
/** What the record of a change is bound to, by its chunk and its place in the chunk (both from 0). */
export function changeRecordField(chunk: number, index: number): string {
  return `chunks.${chunk}.changes.${index}.record`
}
export type EmployeeChange = z.output<typeof employeeChange>

export const EmployeeSyncReceived = eventType('EmployeeSyncReceived', {
  file_id: id(),
  sync_id: id(),
  tenant_id: id(),
  environment: environment(),
  employer_id: id(),
  sender_id: z.string(),
  record_count: z.number().int().positive(),
  chunk_count: z.number().int().positive(),
})
export const EmployeeChangesRecorded = eventType('EmployeeChangesRecorded', {
  file_id: id(),
  employer_id: id(),
  chunk: z.number().int().nonnegative(),
  last: z.boolean(),
  changes: z.array(employeeChange),
})

const events = [EmployeeSyncReceived, EmployeeChangesRecorded] as const
export type EmployeeSyncEvent = EventOf<(typeof events)[number]>
export interface EmployeeSync {
  readonly received: z.output<typeof EmployeeSyncReceived.schema> | null
  readonly chunks_recorded: number
}
export type EmployeeSyncCommand =
  | { readonly type: 'Receive'; readonly data: z.output<typeof EmployeeSyncReceived.schema> }
  | { readonly type: 'RecordChanges'; readonly changes: readonly EmployeeChange[] }

export const employeeSync: Decider<EmployeeSync, EmployeeSyncCommand, EmployeeSyncEvent> = {
  category: 'employeeSync',
  events,
  initialState: { received: null, chunks_recorded: 0 },
  evolve(state, event) {
    return event.type === 'EmployeeSyncReceived'
      ? { ...state, received: event.data }
      : { ...state, chunks_recorded: state.chunks_recorded + 1 }
  },
  decide(command, state): readonly EmployeeSyncEvent[] | Rejection {
    if (command.type === 'Receive') {
      if (state.received) return reject('conflict', 'sync_exists', 'The sync was received already')
      return [EmployeeSyncReceived.of(command.data)]
    }
    if (!state.received) return reject('not_found', 'sync_not_found', 'No such sync')
    const { file_id, employer_id, chunk_count } = state.received
    const chunk = state.chunks_recorded
    if (chunk >= chunk_count)
      return reject('conflict', 'out_of_order', 'All changes of this sync are recorded')
    return [
      EmployeeChangesRecorded.of({
        file_id,
        employer_id,
        chunk,
        last: chunk === chunk_count - 1,
        changes: [...command.changes],
      }),
    ]
  },
}
