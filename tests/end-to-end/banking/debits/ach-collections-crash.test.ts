// @module-tag postgres-log: nothing but a trigger in PostgreSQL refuses events, or holds them back, at the worst moment
// @module-tag long: unit and end-to-end tests of collections have the same steps without kills
import { randomUUID } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { achDebitsOf } from '../../../support/ach-debits.ts'
import { type DyingService, startDyingService } from '../../../support/dying-service.ts'
import { type SeededTenant, seedTenant } from '../../../support/seed.ts'

/** Batch collections of a service that is killed while the log holds one of its appends back. */

let dying: DyingService
let tenant: SeededTenant
let account: string
let policies: readonly string[]

const bank = () => achDebitsOf(dying.service, tenant)

beforeAll(async () => {
  dying = await startDyingService()
  tenant = await seedTenant(dying.service)
  account = await bank().account()
  policies = [tenant.policyId, await bank().policy(), await bank().policy()]
  return () => dying.stop()
})

test.each([
  ['DebitKeyClaimed', 0],
  ['DebitCollectionAccepted', 0],
  ['BankDebitCreated', 3],
])(
  'of one that was killed at %s there are %i debits, and all of them when it is sent again',
  async (type, debits) => {
    const entries = policies.map((policyId) => bank().entry({ policyId }))
    const body = bank().collection(account, ...entries)
    const collect = () => bank().ask('POST', '/ach/collections', body)
    const before = await bank().total()
    await dying.killedAt(type, collect)
    await bank().drain()
    expect(await bank().total()).toBe(before + debits)
    const first = await collect()
    const again = await collect()
    expect([first.status, again.status, again.body]).toEqual([202, 202, first.body])
    expect(first.body.data.transactions).toHaveLength(3)
    expect(await bank().total()).toBe(before + 3)
  },
)

test('of one that was killed with its keys and is refused since its account is gone, every key is free', async () => {
  const gone = await bank().account()
  const entries = policies.map((policyId) => bank().entry({ policyId }))
  const key = randomUUID()
  const collect = () => bank().ask('POST', '/ach/collections', bank().collection(gone, ...entries), key)
  await dying.killedAt('DebitCollectionAccepted', collect)
  await bank().made(200, bank().ask('DELETE', `/bank-accounts/ach/${gone}`))
  expect((await collect()).status).toBe(404)
  const asked = bank().collection(account, ...entries)
  await bank().made(202, bank().ask('POST', '/ach/collections', asked, key))
})
