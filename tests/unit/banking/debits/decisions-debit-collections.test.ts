import { expect, test } from 'vitest'
import {
  DebitCollectionAccepted,
  DebitCollectionRefused,
  debitCollection,
} from '../../../../domain/banking/debits/debit-collection.ts'
import { DebitKeyClaimed, DebitKeyReleased, debitKey } from '../../../../domain/banking/debits/debit-key.ts'
import { fold } from '../../../../domain/kernel/decider.ts'
import { centsOf } from '../../../../domain/kernel/money.ts'
import { decisions } from '../../../support/decider-spec.ts'

// each row reads given, when, then
const [ID, OTHER] = ['a', 'b'].map((digit) => digit.repeat(24)) as [string, string]
const claimed = (content = 'ten dollars') => DebitKeyClaimed.of({ key: ID, content })
// what requests wrote that each held a claim of its own
const heldBy = (claim_id: string) => DebitKeyClaimed.of({ key: ID, claim_id, content: 'ten dollars' })
const released = (claim_id: string) => DebitKeyReleased.of({ key: ID, claim_id })
const claim = (content = 'ten dollars') => ({ type: 'Claim', key: ID, content }) as const
const claimFor = (claimId: string, content = 'ten dollars') => ({ ...claim(content), claimId })
// what requests for something else find after a collection was refused
const claimAfter = (givenBack: string) => ({ ...claim('nine dollars'), givenBack: [givenBack] })
const reused = 'debit_key_reused'

decisions(debitKey, [
  ['is claimed for what is debited', [], claim(), claimed()],
  ['is claimed once by all who ask for the same', [claimed()], claim(), []],
  ['stands for nothing else', [claimed()], claim('nine dollars'), reused],
  [
    'stands for what others may have held it for when one gave it back',
    [heldBy('one'), heldBy('two'), released('one')],
    claim('nine dollars'),
    reused,
  ],
  ['is claimed for a collection', [], claimFor('one'), heldBy('one')],
  ['is claimed once by the same collection', [heldBy('one')], claimFor('one'), []],
  ['is claimed by another collection as well', [heldBy('one')], claimFor('two'), heldBy('two')],
  ['is claimed for good where a collection has it', [heldBy('one')], claim(), claimed()],
  ['is claimed for good by all', [claimed()], claimFor('one'), []],
  [
    'is claimed for something else with what a refused collection gave back',
    [heldBy('one')],
    claimAfter('one'),
    [released('one'), claimed('nine dollars')],
  ],
  ['is given back by who has it', [heldBy('one')], claimAfter('two'), reused],
  ['is not given back for others', [heldBy('one'), claimed()], claimAfter('one'), reused],
  [
    'stands for something else once all gave it back',
    [heldBy('one'), heldBy('two'), released('one'), released('two')],
    claim('nine dollars'),
    claimed('nine dollars'),
  ],
])

const collection = {
  collection_id: ID,
  tenant_id: ID,
  environment: 'live' as const,
  employer_id: ID,
  bank_account_id: ID,
  accepted_at: '2026-11-24T17:00:00.000Z',
  entries: [ID, OTHER].map((policy_id) => ({
    transaction_id: policy_id,
    policy_id,
    carrier_id: ID,
    amount_cents: 12_550,
    description: 'May',
  })),
}
const accepted = DebitCollectionAccepted.of(collection)
const accept = { type: 'Accept', data: collection } as const

const refused = DebitCollectionRefused.of({ collection_id: ID, at: collection.accepted_at })
const refuse = { type: 'Refuse', collectionId: ID, at: Date.parse(collection.accepted_at) } as const

decisions(debitCollection, [
  ['accepts all entries at once', [], accept, accepted],
  ['accepts them once', [accepted], accept, []],
  ['is refused', [], refuse, refused],
  ['is refused once', [refused], refuse, []],
  ['that was accepted is not refused', [accepted], refuse, []],
  ['that was refused is not accepted', [refused], accept, 'collection_refused'],
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
