import { expect, test } from 'vitest'
import { DebitCollectionAccepted, debitCollection } from '../../domain/banking/debit-collection.ts'
import { DebitKeyClaimed, DebitKeyReleased, debitKey } from '../../domain/banking/debit-key.ts'
import { fold } from '../../domain/kernel/decider.ts'
import { centsOf } from '../../domain/kernel/money.ts'
import { decisions } from '../support/decider-spec.ts'

// each row reads given, when, then
const [ID, OTHER] = ['a', 'b'].map((digit) => digit.repeat(24)) as [string, string]
const claimed = (claim_id: string, content = 'ten dollars') =>
  DebitKeyClaimed.of({ key: ID, claim_id, content })
const released = (claim_id: string) => DebitKeyReleased.of({ key: ID, claim_id })
const claim = (claimId: string, content = 'ten dollars') =>
  ({ type: 'Claim', key: ID, claimId, content }) as const
const release = (claimId: string) => ({ type: 'Release', key: ID, claimId }) as const
const reused = { kind: 'conflict', code: 'debit_key_reused' } as const

decisions(debitKey, [
  ['is claimed for what is debited', [], claim('one'), [claimed('one')]],
  ['is claimed once by a request', [claimed('one')], claim('one'), []],
  ['is held together by requests for the same', [claimed('one')], claim('two'), [claimed('two')]],
  ['stands for nothing else', [claimed('one')], claim('two', 'nine dollars'), reused],
  ['is given back by who holds it', [claimed('one')], release('one'), [released('one')]],
  ['is given back by nobody else', [claimed('one')], release('two'), []],
  [
    'stands for the same while another holds it',
    [claimed('one'), claimed('two'), released('one')],
    claim('three', 'nine dollars'),
    reused,
  ],
  [
    'is free when nobody holds it',
    [claimed('one'), claimed('two'), released('one'), released('two')],
    claim('three', 'nine dollars'),
    [claimed('three', 'nine dollars')],
  ],
])

const collection = {
  ...{ collection_id: ID, tenant_id: ID, environment: 'live' as const, employer_id: ID },
  ...{ bank_account_id: ID, accepted_at: '2026-11-24T17:00:00.000Z' },
  entries: [ID, OTHER].map((policy_id) => ({
    ...{ transaction_id: policy_id, policy_id, carrier_id: ID, amount_cents: 12_550, description: 'May' },
  })),
}
const accepted = DebitCollectionAccepted.of(collection)
const accept = { type: 'Accept', data: collection } as const

decisions(debitCollection, [
  ['accepts all entries at once', [], accept, [accepted]],
  ['accepts them once', [accepted], accept, []],
])

test('a collection is what was accepted', () => {
  expect(fold(debitCollection, [accepted])).toEqual(collection)
})

test.each([
  [125.5, 12_550],
  [0.29, 29],
  [1.1, 110],
  [99_999_999.99, 9_999_999_999],
  [1e3, 100_000],
  [1.005, null],
  [0.001, null],
  [1e-7, null],
  [Number.POSITIVE_INFINITY, null],
])('%d dollars are %s cents', (dollars, cents) => {
  expect(centsOf(dollars)).toBe(cents)
})
