import { type DebitCollection, debitCollection } from '../../domain/banking/debits/debit-collection.ts'
import type { Decider } from '../../domain/kernel/decider.ts'
import type { DomainEvent } from '../../domain/kernel/event-type.ts'
import { financingSession } from '../../domain/payments/financing/financing-session.ts'
import { processorNotice } from '../../domain/payments/processor/processor-notice.ts'
import { intake } from '../../domain/policies/intake.ts'
import { OF_TENANT, operatorList } from '../queries/lists.ts'
import type { KeptKind } from './kept-things-table.ts'

/** Lists what is kept of a kind, by employer and further columns. */
function listOfKind<State, Command, Event extends DomainEvent, By extends 'status' = never>(
  kind: KeptKind,
  aggregate: Decider<State | null, Command, Event>,
  by: readonly By[] = [],
) {
  return operatorList(aggregate, {
    projection: 'kept-things',
    table: 'kept_things',
    id: 'id',
    kind,
    by: [...OF_TENANT, 'employer_id', ...by],
  })
}

/** Intakes that were not refused. */
export const listIntakes = listOfKind('intake', intake, ['status'])
/** Financing sessions. */
export const listFinancingSessions = listOfKind('financing_session', financingSession)
/** Debit collections: what was refused is none of them, and what was accepted stays so. */
export const listDebitCollections = listOfKind(
  'debit_collection',
  debitCollection as Decider<DebitCollection | null, never, DomainEvent>,
)
/** Notices of card processors that were not understood at first. */
export const listProcessorNotices = listOfKind('processor_notice', processorNotice, ['status'])
