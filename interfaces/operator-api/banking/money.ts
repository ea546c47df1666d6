import { z } from 'zod'
import { balancesOf } from '../../../application/banking/debits/carrier-balances.ts'
import { listReturnRates, type OriginatorReturns } from '../../../application/banking/debits/return-rates.ts'
import {
  findReconciliation,
  listReconciliations,
  reconcile,
} from '../../../application/banking/reconciliation/reconcile.ts'
import {
  isAbove,
  RATE_DAYS,
  RETURN_RATE_KINDS,
  RETURN_RATES,
  type ReturnRateKind,
} from '../../../domain/banking/debits/return-rate.ts'
import {
  DIFFERENCES,
  DIFFERENCES_REPORTED,
  reconciliation,
} from '../../../domain/banking/reconciliation/reconciliation.ts'
import { create, created } from '../../endpoints/creations.ts'
import { accepted } from '../../endpoints/endpoint.ts'
import { id, ofOne } from '../../endpoints/fields.ts'
import { listed, listOf } from '../../endpoints/lists.ts'
import { endpoint, keyed } from '../host/api.ts'
import { handleList, scope } from '../host/lists.ts'
import { owner, shownTime } from '../host/values.ts'

const cents = (meaning: string) => z.int().describe(meaning)

const Balances = z
  .object({
    environment: z.enum(['live', 'sandbox']),
    due_cents: cents(
      'Debits that are to be collected: waiting for their batch or its close, or in quarantine',
    ),
    in_file_cents: cents('Debits in a file for the bank that it has not acknowledged'),
    at_bank_cents: cents('Debits that the bank has, and of which nobody has said that the money is there'),
    received_cents: cents(
      'Debits whose money was found among the credits, or that the processor reports settled',
    ),
    returned_cents: cents('Debits that came back'),
    unmatched_cents: cents('Credits that are the money of no debit. They count as live'),
  })
  .meta({ id: 'CarrierBalances' })

const Rate = z
  .object({
    returned: z.int(),
    rate: z.number().describe('Of the entries, to six decimals; 0.005 is half a percent'),
    limit: z.number(),
    exceeded: z.boolean().describe('Whether the rate is above its limit, by more than a single return'),
  })
  .meta({ id: 'ReturnRate' })
const ReturnRates = z
  .object({
    ...owner,
    from: z.string().meta({ format: 'date' }),
    to: z.string().meta({ format: 'date' }),
    entries: z.int().describe('Debits that the bank has taken, each time that they were presented'),
    unauthorized: Rate.describe('R05, R07, R10, R11, R29, R51'),
    administrative: Rate.describe('R02, R03, R04'),
    overall: Rate.describe('All returns'),
  })
  .meta({ id: 'ReturnRates' })

const Difference = z
  .object({
    what: z.enum(DIFFERENCES),
    tenant_id: id().nullable(),
    environment: z.enum(['live', 'sandbox']).nullable(),
    carrier_id: id().nullable(),
    leg_id: id().nullable(),
    file_id: id().nullable(),
    expected: z.string().describe('By the events'),
    found: z.string(),
  })
  .meta({ id: 'ReconciliationDifference' })
const Reconciliation = z
  .object({
    reconciliation_id: id(),
    trigger: z.enum(['night', 'operator']),
    through_position: z.string().describe('Up to where in the log changed debits were compared one by one'),
    compared: z
      .object({
        debits: z.int().describe('One by one, since they have changed'),
        ledger: z.int(),
        balances: z.int(),
        credits: z.int(),
        files: z.int(),
      })
      .describe('How many of each'),
    differences: z.array(Difference).readonly().describe(`At most ${DIFFERENCES_REPORTED}, the first ones`),
    difference_count: z.int(),
    started_at: shownTime(),
    at: shownTime(),
  })
  .meta({ id: 'Reconciliation' })

export const moneyEndpoints = [
  endpoint({
    operation: 'showCarrierBalances',
    route: 'GET /carriers/{carrier_id}/balances',
    summary: 'Show where the money of a carrier stands',
    ...ofOne('carrier_id', 'carrier'),
    answers: { 200: z.array(Balances).readonly() },
    columns:
      'environment due_cents in_file_cents at_bank_cents received_cents returned_cents unmatched_cents',
    async handle({ host, params }) {
      const found = accepted(await balancesOf(host.app, params.carrier_id))
      return found.map(({ environment, balances }) => ({
        environment,
        due_cents: balances.due,
        in_file_cents: balances.in_file,
        at_bank_cents: balances.at_bank,
        received_cents: balances.received,
        returned_cents: balances.returned,
        unmatched_cents: balances.unmatched,
      }))
    },
  }),
  endpoint({
    operation: 'listReturnRates',
    route: 'GET /return-rates',
    summary: `List how many debits came back in the last ${RATE_DAYS} days, by tenant and environment`,
    ...listOf(ReturnRates, scope),
    columns: {
      tenant: 'tenant_id',
      environment: 'environment',
      entries: 'entries',
      ...Object.fromEntries(
        RETURN_RATE_KINDS.map((kind) => [
          kind,
          (shown: object) => {
            const { rate, exceeded } = (shown as Record<ReturnRateKind, z.output<typeof Rate>>)[kind]
            return `${(100 * rate).toFixed(2)} %${exceeded ? ' (above its limit)' : ''}`
          },
        ]),
      ),
    },
    handle: handleList(listReturnRates, shownRates),
  }),
  endpoint({
    operation: 'reconcile',
    route: 'POST /reconciliations',
    summary: 'Compare events, ledger, balances, credits and files for the bank now',
    description:
      'The comparison changes none of them. The same is done in each night after a day on which money moved.',
    body: z.object({}),
    ...created(Reconciliation),
    command: { name: 'reconciliations run' },
    handle: (call) =>
      create(keyed(call), 'POST /reconciliations', {
        create: (context) => reconcile(call.host.app, 'operator', context),
        show: (one) => one,
        repeated: reconciliation,
      }),
  }),
  endpoint({
    operation: 'listReconciliations',
    route: 'GET /reconciliations',
    summary: 'List comparisons of the money, newest first',
    ...listOf(Reconciliation),
    columns: 'reconciliation_id trigger at differences:difference_count',
    handle: ({ host: { app }, query }) => listed(query, (wanted) => listReconciliations(app, wanted)),
  }),
  endpoint({
    operation: 'showReconciliation',
    route: 'GET /reconciliations/{reconciliation_id}',
    summary: 'Show a comparison of the money, with what differs',
    ...ofOne('reconciliation_id', 'reconciliation'),
    answers: { 200: Reconciliation },
    handle: ({ host, params }) => findReconciliation(host.app, params.reconciliation_id),
  }),
]

function shownRates(counted: OriginatorReturns) {
  const rateOf = (kind: ReturnRateKind) => {
    const returned = counted.returned[kind]
    const exact = returned === 0 ? 0 : returned / Math.max(counted.entries, 1)
    return {
      returned,
      rate: Math.round(exact * 1_000_000) / 1_000_000,
      limit: RETURN_RATES[kind].limit_per_mille / 1_000,
      exceeded: isAbove(kind, counted),
    }
  }
  return {
    ...counted,
    unauthorized: rateOf('unauthorized'),
    administrative: rateOf('administrative'),
    overall: rateOf('overall'),
  }
}
