import { mayActFor, mayUseCarrier } from '../../../domain/access/api-client.ts'
import { bankDebit } from '../../../domain/banking/debits/bank-debit.ts'
import {
  type BankDebit,
  DEBIT_STATUSES,
  type DebitStatus,
} from '../../../domain/banking/debits/bank-debit-state.ts'
import {
  LEGACY_GROUPS,
  LEGACY_STATUSES,
  type LegacyCollection,
  type LegacyStatus,
} from '../../../domain/banking/legacy/legacy-collection.ts'
import { isId } from '../../../domain/kernel/ids.ts'
import { isRejection, type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import { type KeyScope, ownedBy, stateOf } from '../../access/owned-by.ts'
import type { Application } from '../../commands/application.ts'
import { legacyRecordOf } from '../legacy/legacy-collections.ts'

/** What a status says of the money. */
export const STATUS_GROUPS = ['in_flight', 'money_landed', 'failed'] as const
export type StatusGroup = (typeof STATUS_GROUPS)[number]
export type TransactionStatus = DebitStatus | LegacyStatus
export const TRANSACTION_STATUSES = [...new Set([...DEBIT_STATUSES, ...LEGACY_STATUSES])] as const

const GROUP_OF: Readonly<Record<DebitStatus, StatusGroup>> = {
  pending: 'in_flight',
  Scheduled: 'in_flight',
  submitted: 'money_landed',
  processed: 'money_landed',
  legacy_collected: 'money_landed',
  returned: 'failed',
  failed: 'failed',
  cancelled: 'failed',
  quarantined: 'failed',
}
/** Groups by further words that a filter takes, lower case; any other word is a status itself. */
const GROUP_WORDS = new Map<string, StatusGroup>([
  ...STATUS_GROUPS.map((group) => [group, group] as const),
  ['pending', 'in_flight'],
  ['completed', 'money_landed'],
])

/** The group of a debit's status. */
export function groupOf(status: DebitStatus): StatusGroup {
  return GROUP_OF[status]
}

function isLegacyOf(group: StatusGroup, status: LegacyStatus): boolean {
  return LEGACY_GROUPS[group].some((one) => one === status)
}

/** The reason once more, where the money did not move. */
export function failureReasonOf({ status, reason }: Pick<BankDebit, 'status' | 'reason'>): string | null {
  return groupOf(status) === 'failed' ? reason : null
}

/** Statuses of debits, and of legacy records. */
export interface Statuses {
  readonly debits: readonly DebitStatus[]
  readonly legacy: readonly LegacyStatus[]
}

/** The statuses that a word of a filter stands for, in any case. */
export function statusesOf(word: string): Statuses {
  const wanted = word.toLowerCase()
  const group = GROUP_WORDS.get(wanted)
  const isWord = (status: string) => status.toLowerCase() === wanted
  return {
    debits: DEBIT_STATUSES.filter((one) => (group === undefined ? isWord(one) : GROUP_OF[one] === group)),
    legacy: LEGACY_STATUSES.filter((one) => (group === undefined ? isWord(one) : isLegacyOf(group, one))),
  }
}

/** A transaction of the ledger: a debit of this service, or a record of the legacy one. */
export type Transaction =
  | { readonly kind: 'debit'; readonly debit: BankDebit }
  | { readonly kind: 'legacy'; readonly record: LegacyCollection }

/**
 * A transaction that a partner names.
 * @throws ReadModelsLate when it may be an imported record that cannot be found yet.
 */
export async function transactionOf(
  app: Application,
  client: KeyScope,
  id: string,
): Promise<Transaction | Rejection> {
  const debit = await stateOf(app, bankDebit, id)
  const record = debit === null && isId(id) ? await legacyRecordOf(app, id) : null
  const owned = debit ?? record
  const named = await ownedBy(client, owned, 'transaction', (one) => isInside(client, one))
  if (isRejection(named)) return named
  return debit === null ? { kind: 'legacy', record: record! } : { kind: 'debit', debit }
}

/** A debit that a partner names; what the legacy service collected is none. @throws ReadModelsLate */
export async function debitOf(
  app: Application,
  client: KeyScope,
  id: string,
): Promise<BankDebit | Rejection> {
  const found = await transactionOf(app, client, id)
  if ('rejected' in found) return found
  if (found.kind === 'debit') return found.debit
  const why = 'The legacy service raised the transaction: it is not changed here'
  return reject('conflict', 'legacy_transaction', why)
}

/** What names no carrier is for keys of all carriers. */
function isInside(
  client: KeyScope,
  { employer_id, carrier_id }: { readonly employer_id: string; readonly carrier_id: string | null },
): boolean {
  if (!mayActFor(client, employer_id)) return false
  return carrier_id === null ? client.carrier_ids === 'all' : mayUseCarrier(client, carrier_id)
}
