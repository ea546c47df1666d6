import { type DebitCollection, debitCollection } from '../../domain/banking/debits/debit-collection.ts'
import type { Decider } from '../../domain/kernel/decider.ts'
import type { DomainEvent } from '../../domain/kernel/event-type.ts'
import { financingSession } from '../../domain/payments/financing/financing-session.ts'
import { processorNotice } from '../../domain/payments/processor/processor-notice.ts'
import { intake } from '../../domain/policies/intake.ts'
import type { Application } from '../commands/application.ts'
import type { ListPage, PageRequest } from '../ports/read-database.ts'
import { isOfTenant, type ListScope, loadPage, pagedList } from '../queries/pages.ts'
import { equalIfGiven, type Parameter } from '../queries/statement.ts'
import type { KeptKind } from './kept-things-table.ts'

/** What a list is narrowed to; null is everything. */
interface KeptScope extends ListScope {
  readonly employer_id: string | null
  readonly status?: string | null
}

type ListOf<State> = (
  app: Pick<Application, 'read' | 'readModels' | 'log' | 'commands'>,
  scope: KeptScope,
  page: PageRequest,
) => Promise<ListPage<State>>

const KEPT = pagedList(
  { projection: 'kept-things', name: 'operator-kept-things' },
  (db, $: Parameter<Required<KeptScope> & { readonly kind: KeptKind }>) =>
    db
      .selectFrom('kept_things')
      .select('id')
      .where('kind', '=', $('kind'))
      .where((eb) => isOfTenant(eb, $))
      .where((eb) => equalIfGiven(eb, $, 'employer_id', 'status'))
      .orderBy('seq', 'desc'),
)

/** Lists what is kept of a kind. */
function listOfKind<State, Command, Event extends DomainEvent>(
  kind: KeptKind,
  aggregate: Decider<State | null, Command, Event>,
): ListOf<State> {
  return (app, { tenant_id, environment, employer_id, status = null }, page) =>
    loadPage(app, aggregate, KEPT, { kind, tenant_id, environment, employer_id, status }, page)
}

/** Intakes that were not refused, newest first. */
export const listIntakes = listOfKind('intake', intake)
/** Financing sessions, newest first. */
export const listFinancingSessions = listOfKind('financing_session', financingSession)
/** Debit collections, newest first: what was refused is none of them, and what was accepted stays so. */
export const listDebitCollections = listOfKind('debit_collection', debitCollection) as ListOf<DebitCollection>
/** Notices of card processors that were not understood at first, newest first. */
export const listProcessorNotices = listOfKind('processor_notice', processorNotice)
