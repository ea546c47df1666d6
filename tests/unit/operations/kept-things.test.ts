import { describe, expect, test } from 'vitest'
import { THINGS } from '../../../application/search/things.ts'
import { aggregates } from '../../../domain/catalogue.ts'
import { OperatorEndpoints } from '../../../interfaces/operator-api/console/calls.ts'
import { resources } from '../../../interfaces/operator-api/console/resources.ts'
import { operatorEndpoints } from '../../../interfaces/operator-api/endpoints.ts'
import { pluralOf } from '../../../interfaces/operator-api/host/lists.ts'

const endpoints = new OperatorEndpoints(operatorEndpoints)

/** Kinds of streams that are no things of their own, each beside what shows it. */
const PARTS: Readonly<Record<string, string>> = {
  employeeSync: 'payroll_file',
  legacyImport: 'legacy_collection',
  bankDebit: 'debit',
  debitKey: 'debit',
  webhookSubscriptions: 'webhook_subscription',
  operatorAlert: 'alert',
  raisedAlert: 'alert',
  bankFileEntries: 'bank_file',
  bankFileNumbers: 'bank_file',
  bankTransactions: 'bank_connection',
  primaryAccount: 'bank_account',
  microDeposits: 'ach_account',
  microDepositsOfBatch: 'ach_account',
  verificationStarts: 'ach_account',
  disabledNumbers: 'ach_account',
  payerCorrection: 'ach_account',
  processorCustomer: 'employer',
  dataSubject: 'employer',
  processorNotices: 'processor_notice',
  returnRate: 'tenant',
  checkoutSettings: 'tenant',
  financingSettings: 'tenant',
  logo: 'tenant',
}
/** The service's own affairs: nothing of a tenant. */
const OWN = [
  'reservation',
  'idempotencyKey',
  'installation',
  'virtualClock',
  'operatorAction',
  'operators',
  'pendingActions',
  'readModelRebuild',
  'processClock',
]

describe('what the service keeps', () => {
  test('is found by the search, whatever kind of stream it stands in', () => {
    const kinds = aggregates.map(({ category }) => {
      const kind = category.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
      return PARTS[category] ?? (OWN.includes(category) ? 'tenant' : kind)
    })
    expect(kinds.filter((kind) => !(kind in THINGS))).toEqual([])
  })

  test.each(Object.keys(THINGS))(
    '%s is listed in pages and read by its id: by the API, the command line and the console',
    (kind) => {
      const plural = pluralOf(kind)
      const [list, show] = [endpoints.of(`GET /${plural}`), endpoints.of(`GET /${plural}/{}`)]
      expect(Object.keys(list.query?.shape ?? {})).toEqual(expect.arrayContaining(['page', 'limit']))
      expect(list.command?.name).toMatch(`${plural} ${kind === 'webhook_subscription' ? 'all' : 'list'}`)
      expect(show.command?.name).toBe(`${plural} show`)
      const place = resources.find(({ path }) => path === plural)
      expect([place?.list, place?.show?.replaceAll(/\{\w+\}/g, '{}')]).toEqual([
        `GET /${plural}`,
        `GET /${plural}/{}`,
      ])
    },
  )
})
