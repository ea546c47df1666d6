import { mayActFor, mayUseCarrier } from '../../domain/access/api-client.ts'
import { isRejection, type Rejection } from '../../domain/kernel/rejection.ts'
import { type Carrier, carrier } from '../../domain/parties/carrier.ts'
import { type Employer, employer } from '../../domain/parties/employer.ts'
import { isInsuredInScope } from '../access/client-scope.ts'
import { type KeyScope, ownedBy, stateOf } from '../access/owned-by.ts'
import type { Application } from '../commands/application.ts'
import type { Reads } from '../commands/command-handler.ts'
import type { ListPage, PageRequest } from '../ports/read-database.ts'
import { keyScope, type KeyScope as ListedScope, loadPage, pagedList } from '../queries/pages.ts'
import { inIfGiven, type Parameter, sql } from '../queries/statement.ts'
import { type ShownEmployer, showEmployer, showEmployers } from './show-employers.ts'

type Parts = Pick<Application, 'read' | 'readModels' | 'log' | 'commands'>

const EMPLOYERS = pagedList(
  { projection: 'employers', name: 'employers-in-scope' },
  (db, $: Parameter<ListedScope>) =>
    db
      .selectFrom('employers')
      .select('employers.employer_id as id')
      .where('tenant_id', '=', $('tenantId'))
      .where('environment', '=', $('environment'))
      .where((eb) => inIfGiven(eb, 'employer_id', $('employerIds')))
      .where((eb) =>
        eb.or([
          eb(eb.cast<readonly string[] | null>($('carrierIds'), sql`text[]`), 'is', null),
          eb.exists(
            eb
              .selectFrom('policies')
              .select('policies.policy_id')
              .whereRef('policies.employer_id', '=', 'employers.employer_id')
              .where((of) => inIfGiven(of, 'policies.carrier_id', $('carrierIds'))),
          ),
        ]),
      )
      .orderBy('seq', 'desc'),
)

/** The employers within the scope of a key, newest first: with limits on carriers, those that have a policy of one of them. */
export async function listEmployersInScope(
  app: Parts & Pick<Application, 'personalData'>,
  client: KeyScope,
  page: PageRequest,
): Promise<ListPage<ShownEmployer>> {
  if (client.carrier_ids !== 'all') await app.readModels.reached(['policies'], await app.log.head())
  const { items, total } = await loadPage(app, employer, EMPLOYERS, keyScope(client), page)
  return { items: await showEmployers(app, items), total }
}

/** An employer that a partner names. @throws ReadModelsLate when whether a carrier of the key insures it cannot be told yet. */
export async function employerInScope(
  app: Parts & Pick<Application, 'personalData'>,
  client: KeyScope,
  employerId: string,
): Promise<ShownEmployer | Rejection> {
  const found = await ownedBy<Employer>(
    client,
    await stateOf(app, employer, employerId),
    'employer',
    (one) => mayActFor(client, one.employer_id) && isInsuredInScope(app, client, one.employer_id),
  )
  return isRejection(found) ? found : showEmployer(app, found)
}

const CARRIERS = pagedList(
  { projection: 'policies', name: 'carriers-in-scope' },
  (db, $: Parameter<Pick<ListedScope, 'tenantId' | 'carrierIds'>>) =>
    db
      .selectFrom('carriers')
      .select('carrier_id as id')
      .where('tenant_id', '=', $('tenantId'))
      .where((eb) => inIfGiven(eb, 'carrier_id', $('carrierIds')))
      .orderBy('seq', 'desc'),
)

/** The carriers within the scope of a key, newest first; they span both environments. */
export async function listCarriersInScope(
  app: Parts,
  client: KeyScope,
  page: PageRequest,
): Promise<ListPage<Carrier>> {
  return loadPage(app, carrier, CARRIERS, keyScope(client), page)
}

/** A carrier that a partner names. */
export async function carrierInScope(
  app: Reads,
  client: KeyScope,
  carrierId: string,
): Promise<Carrier | Rejection> {
  const state = await stateOf(app, carrier, carrierId)
  const { environment } = client
  return ownedBy(client, state && { ...state, environment }, 'carrier', (one) =>
    mayUseCarrier(client, one.carrier_id),
  )
}
