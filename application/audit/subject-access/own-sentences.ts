import { dollars } from '../../../domain/kernel/money.ts'
import { EmployeeChangesRecorded, EmployeeSyncReceived } from '../../../domain/parties/employee-sync.ts'
import * as payroll from '../../../domain/payroll/payroll-file-events.ts'
import { PolicyNotActivated } from '../../../domain/policies/policy.ts'
import type { RecordedEvent } from '../../commands/event-registry.ts'
import { actorOf, sentenceOf } from '../sentences.ts'

/** What events that name others as well say of one: nothing is told or counted that is not that one's. */

type Data = Readonly<Record<string, unknown>>
type Tuples = readonly (readonly [number, number, ...unknown[]])[]

const sum = (tuples: unknown) => dollars((tuples as Tuples).reduce((total, [, cents]) => total + cents, 0))
const rows = (list: unknown) => {
  const { length } = list as readonly unknown[]
  return `${length} ${length === 1 ? 'row' : 'rows'}`
}
const invalid = (failures: unknown) =>
  (failures as readonly unknown[]).length === 0
    ? 'All rows of the person are valid'
    : `${rows(failures)} of the person cannot be taken as they are`
const failed = () => 'The payroll file failed'

const OF_PERSON: Readonly<Record<string, (data: Data, by: string) => string>> = {
  [payroll.PayrollFileReceived.name]: ({ period, source }, by) => {
    const { start, end } = (period ?? {}) as { readonly start?: string; readonly end?: string }
    const { kind } = source as { readonly kind: string }
    const how = kind === 'tool' ? 'by a tool call' : kind === 'report' ? 'by report' : 'by signed webhook'
    return `A payroll file with the person in it${start ? ` for ${start} to ${end}` : ''} came ${how}${by}`
  },
  [payroll.PayrollRowsRecorded.name]: (data) => `${rows(data.rows)} of the person were recorded`,
  [payroll.PayrollFileNormalized.name]: () => 'The payroll file was recorded as a whole',
  [payroll.PayrollRowsValidated.name]: ({ failures }) => invalid(failures),
  [payroll.PayrollWagesCalculated.name]: ({ wages }) => `Auditable wages of the person are ${sum(wages)}`,
  [payroll.PayrollPremiumCalculated.name]: ({ premiums }) => `Premium for the person is ${sum(premiums)}`,
  [payroll.PayrollFileProcessed.name]: ({ validation, wages, premium }) => {
    const { failures } = validation as Data
    const owed =
      premium === null ? 'no premium could be worked out' : `premium ${sum((premium as Data).premiums)}`
    return `${invalid(failures)}: auditable wages ${sum((wages as Data).wages)}, ${owed}`
  },
  [payroll.PayrollFileFailed.name]: failed,
  [EmployeeSyncReceived.name]: (_, by) => `A file of changes of employees with the person in it came${by}`,
  [EmployeeChangesRecorded.name]: ({ changes }) => {
    const actions = (changes as readonly { readonly action: string }[]).map(({ action }) => action)
    return `Changes of the person were recorded: ${actions.join(', ')}`
  },
}

const OF_OWNER: Readonly<Record<string, (data: Data) => string>> = {
  [payroll.PayrollFileFailed.name]: failed,
  [PolicyNotActivated.name]: ({ reason }) =>
    `The policy could not become active: ${reason === 'policy_cancelled' ? 'it is cancelled' : 'another policy has its number'}`,
}

/**
 * What an event says of the subject.
 * @param own the part of its data that is the subject's.
 * @param isOwner the subject is the employer that the event belongs to, whose totals are its own.
 */
export function sentenceFor(event: RecordedEvent, own: Data, isOwner: boolean): string {
  const say = (isOwner ? OF_OWNER : OF_PERSON)[event.type]
  return say ? `${say(own, actorOf(event.metadata.actor))}.` : sentenceOf(event)
}
