import { z } from 'zod'
import type { EventType } from '../../domain/kernel/event-type.ts'
import { id, isId } from '../../domain/kernel/ids.ts'
import { EmployeeSyncReceived } from '../../domain/parties/employee-sync.ts'
import {
  EmployerDetailsChanged,
  EmployerLinkedToPayrollCompany,
  EmployerRegistered,
  EmployerUnlinkedFromPayrollCompany,
} from '../../domain/parties/employer.ts'
import { payrollFile } from '../../domain/payroll/payroll-file.ts'
import {
  PayrollFileFailed,
  PayrollFileProcessed,
  PayrollFileReceived,
  PayrollPremiumCalculated,
} from '../../domain/payroll/payroll-file-events.ts'
import {
  PolicyActivated,
  PolicyCancelled,
  PolicyIssued,
  PolicyTermsChanged,
  policy,
} from '../../domain/policies/policy.ts'
import type { CommandHandler } from '../commands/command-handler.ts'
import { type RecordedEvent, UnreadableEvent } from '../commands/event-registry.ts'
import type { IntegrationEvent } from '../ports/integration-events.ts'

/**
 * What other systems hear of, by event word: the schema of the message's `data`. Ids, dates, counts
 * and cents only; nothing here is about a person. Fields are only ever added.
 */
export const INTEGRATION_EVENTS = {
  'employer.registered': z.strictObject({ employer_id: id(), payroll_company_ids: z.array(id()) }),
  'employer.changed': z.strictObject({ employer_id: id() }),
  'employer.linked': z.strictObject({ employer_id: id(), payroll_company_id: id() }),
  'employer.unlinked': z.strictObject({ employer_id: id(), payroll_company_id: id() }),
  'employees.sync_received': z.strictObject({
    sync_id: id(),
    file_id: id(),
    employer_id: id(),
    record_count: z.number().int(),
  }),
  'policy.issued': z.strictObject({
    policy_id: id(),
    employer_id: id(),
    carrier_id: id(),
    policy_number: z.string(),
    status: z.enum(['active', 'in_progress']),
    effective_date: z.string(),
    expiration_date: z.string(),
  }),
  'policy.changed': z.strictObject({
    policy_id: id(),
    employer_id: id(),
    /** Names of the terms that changed. */
    changed: z.array(z.string()),
  }),
  'policy.activated': z.strictObject({ policy_id: id(), employer_id: id() }),
  'policy.cancelled': z.strictObject({ policy_id: id(), employer_id: id() }),
  'payroll.file_received': z.strictObject({
    file_id: id(),
    employer_id: id(),
    policy_id: id(),
    policy_number: z.string(),
    source: z.enum(['tool', 'report', 'inbound_webhook']),
    submission_id: id().nullable(),
    row_count: z.number().int(),
    period: z.object({ start: z.string(), end: z.string() }).nullable(),
  }),
  'payroll.file_completed': z.strictObject({
    file_id: id(),
    employer_id: id(),
    policy_id: id(),
    policy_number: z.string(),
    row_count: z.number().int(),
    green_rows: z.number().int(),
    red_rows: z.number().int(),
    auditable_cents: z.number().int(),
    premium_cents: z.number().int(),
    period: z.object({ start: z.string(), end: z.string() }).nullable(),
  }),
  'payroll.file_failed': z.strictObject({
    file_id: id(),
    employer_id: id(),
    policy_id: id(),
    stage: z.enum(['file_creation', 'validation', 'wage_calculation', 'premium_calculation']),
    error: z.string(),
  }),
} as const
export type IntegrationEventWord = keyof typeof INTEGRATION_EVENTS

type DataOf<Word extends IntegrationEventWord> = z.output<(typeof INTEGRATION_EVENTS)[Word]>
type Message = {
  [Word in IntegrationEventWord]: { readonly type: Word; readonly data: DataOf<Word> }
}[IntegrationEventWord]
type MessageOf<Data> = (
  data: Data,
  commands: Pick<CommandHandler, 'load'>,
) => Message | null | Promise<Message | null>

interface Source {
  readonly type: EventType
  readonly messageOf: MessageOf<never>
}
function on<Type extends EventType>(type: Type, messageOf: MessageOf<z.output<Type['schema']>>): Source {
  return { type, messageOf: messageOf as MessageOf<never> }
}

/** Which events of the log other systems hear of, and as what. */
const SOURCES: readonly Source[] = [
  on(EmployerRegistered, ({ employer_id, payroll_company_ids }) => ({
    type: 'employer.registered',
    data: { employer_id, payroll_company_ids },
  })),
  on(EmployerDetailsChanged, ({ employer_id }) => ({ type: 'employer.changed', data: { employer_id } })),
  on(EmployerLinkedToPayrollCompany, (data) => ({ type: 'employer.linked', data })),
  on(EmployerUnlinkedFromPayrollCompany, (data) => ({ type: 'employer.unlinked', data })),
  on(EmployeeSyncReceived, ({ sync_id, file_id, employer_id, record_count }) => ({
    type: 'employees.sync_received',
    data: { sync_id, file_id, employer_id, record_count },
  })),
  on(PolicyIssued, (issued) => {
    const { policy_id, employer_id, carrier_id, policy_number, status } = issued
    const { effective_date, expiration_date } = issued
    return {
      type: 'policy.issued',
      data: { policy_id, employer_id, carrier_id, policy_number, status, effective_date, expiration_date },
    }
  }),
  on(PolicyTermsChanged, async ({ policy_id, ...terms }, commands) => {
    const { employer_id } = (await commands.load(policy, policy_id)).state!
    return { type: 'policy.changed', data: { policy_id, employer_id, changed: Object.keys(terms).sort() } }
  }),
  on(PolicyActivated, async ({ policy_id }, commands) => {
    const { employer_id } = (await commands.load(policy, policy_id)).state!
    return { type: 'policy.activated', data: { policy_id, employer_id } }
  }),
  on(PolicyCancelled, async ({ policy_id }, commands) => {
    const { employer_id } = (await commands.load(policy, policy_id)).state!
    return { type: 'policy.cancelled', data: { policy_id, employer_id } }
  }),
  on(PayrollFileReceived, (received) => {
    const { file_id, employer_id, policy_id, policy_number, source, row_count, period } = received
    const { kind, submission_id } = source
    return {
      type: 'payroll.file_received',
      data: {
        file_id,
        employer_id,
        policy_id,
        policy_number,
        source: kind,
        submission_id,
        row_count,
        period,
      },
    }
  }),
  on(PayrollFileProcessed, (processed) => {
    const { file_id, employer_id, policy_id, policy_number, row_count, period } = processed
    const { validation, wages, premium } = processed
    // the event that follows tells that the file failed
    if (!premium) return null
    return {
      type: 'payroll.file_completed',
      data: {
        file_id,
        employer_id,
        policy_id,
        policy_number,
        row_count,
        green_rows: validation.green,
        red_rows: validation.red,
        auditable_cents: wages.auditable_cents,
        premium_cents: premium.premium_cents,
        period,
      },
    }
  }),
  on(PayrollPremiumCalculated, async ({ file_id, last, completed }, commands) => {
    if (!last) return null
    if (completed) {
      // consumers need not know the account that a premium is debited from
      const { debit_account_id: _, ...message } = completed
      return { type: 'payroll.file_completed', data: { file_id, ...message } }
    }
    // stored by an earlier release. Nothing follows the last premium: the sums are the same whenever they are looked at
    const { received, validated, wages, premium } = (await commands.load(payrollFile, file_id)).state
    const { employer_id, policy_id, policy_number, row_count, period } = received!
    return {
      type: 'payroll.file_completed',
      data: {
        file_id,
        employer_id,
        policy_id,
        policy_number,
        row_count,
        green_rows: validated.green,
        red_rows: validated.red,
        auditable_cents: wages.cents,
        premium_cents: premium.cents,
        period,
      },
    }
  }),
  on(PayrollFileFailed, async ({ file_id, stage, error }, commands) => {
    const { employer_id, policy_id } = (await commands.load(payrollFile, file_id)).state.received!
    return { type: 'payroll.file_failed', data: { file_id, employer_id, policy_id, stage, error } }
  }),
]
const SOURCES_BY_TYPE = new Map(SOURCES.map((source) => [source.type.name, source]))

/** Names of the event types that lead to integration events. */
export const INTEGRATION_SOURCES: readonly string[] = [...SOURCES_BY_TYPE.keys()]

/**
 * What other systems hear of an event; null when nothing. The same event always yields the same.
 * @param commands where events refer to other facts of their stream.
 */
export async function integrationEventOf(
  event: RecordedEvent,
  commands: Pick<CommandHandler, 'load'>,
): Promise<IntegrationEvent | null> {
  const { tenant_id, environment, recorded_at, correlation_id } = event.metadata
  const source = SOURCES_BY_TYPE.get(event.type)
  // events without a tenant are not published
  if (!source || tenant_id === null || environment === null) return null
  if (!isId(tenant_id)) throw new UnreadableEvent(event, 'its tenant is none')
  const message = await source.messageOf(event.data as never, commands)
  if (!message) return null
  const { type } = message
  // strict: a field that is not in the schema must never get out
  const data = INTEGRATION_EVENTS[type].parse(message.data)
  const text = JSON.stringify({
    id: event.eventId,
    type,
    version: 1,
    position: String(event.position),
    occurred_at: recorded_at,
    environment,
    tenant_id,
    correlation_id,
    data,
  })
  return { id: event.eventId, type, environment, tenantId: tenant_id, text }
}
