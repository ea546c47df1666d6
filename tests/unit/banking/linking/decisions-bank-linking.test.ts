import { describe, expect, test } from 'vitest'
import {
  BankConnectionAccountsFound,
  type BankConnectionCommand,
  type BankConnectionEvent,
  BankConnectionHandleIssued,
  BankConnectionLinked,
  BankConnectionLoginRequired,
  BankConnectionRestored,
  bankConnection,
} from '../../../../domain/banking/linking/bank-connection.ts'
import {
  type BankTransaction,
  BankTransactionsReceived,
  bankTransactions,
} from '../../../../domain/banking/linking/bank-transactions.ts'
import { isoTime } from '../../../../domain/kernel/calendar.ts'
import { fold } from '../../../../domain/kernel/decider.ts'
import type { Sealed } from '../../../../domain/kernel/sealed.ts'
import { type Decision, decisions } from '../../../support/decider-spec.ts'

// each row reads given, when, then
const [CONNECTION, TENANT, EMPLOYER, OTHER, ACCOUNT] = ['c', '1', 'e', 'f', 'a'].map((digit) =>
  digit.repeat(24),
) as [string, string, string, string, string]
const NOW = Date.UTC(2026, 10, 30, 12)
const at = isoTime(NOW)
const connection_id = CONNECTION
const owner = { connection_id, tenant_id: TENANT, environment: 'live', item_id: 'item' } as const

const linked = BankConnectionLinked.of({
  ...owner,
  provider: 'plaid',
  user_id: 'u1',
  employer_id: EMPLOYER,
  carrier_id: null,
  linked_at: at,
})
const issued = (handle_hash: string) =>
  BankConnectionHandleIssued.of({ connection_id, handle_hash, token_ref: 'ref', at })
const account = {
  bankconnect_account_id: 'a1',
  bank_account_id: ACCOUNT,
  type: 'checking',
  mask: '1234',
} as const
const found = (...accounts: (typeof account)[]) =>
  BankConnectionAccountsFound.of({ connection_id, institution_name: 'Bank', accounts, at })
const broken = BankConnectionLoginRequired.of({ connection_id, at })
const restored = BankConnectionRestored.of({ connection_id, at })

const link = { type: 'Link', data: linked.data } as const
const issue = { type: 'IssueHandle', handleHash: 'h1', tokenRef: 'ref', at: NOW } as const
const findOne = { type: 'FindAccounts', institutionName: 'Bank', accounts: [account], at: NOW } as const
const [requireLogin, restore] = [
  { type: 'RequireLogin', at: NOW },
  { type: 'Restore', at: NOW },
] as const

decisions(bankConnection, [
  ['is linked', [], link, linked],
  ['is the same one when its item is linked again', [linked], link, []],
  ['is nobody elses', [linked], { ...link, data: { ...linked.data, employer_id: OTHER } }, 'item_linked'],
  ...([issue, findOne, requireLogin, restore].map((command) => [
    `is not there before: ${command.type}`,
    [],
    command,
    'bank_connection_not_found',
  ]) satisfies Decision<BankConnectionCommand, BankConnectionEvent>[]),
  ['hands out a handle', [linked], issue, issued('h1')],
  ['finds accounts', [linked], findOne, found(account)],
  ['finds the same ones', [linked, found(account)], findOne, []],
  ['finds others', [linked, found()], findOne, found(account)],
  ['needs a log-in', [linked], requireLogin, broken],
  ['needs one log-in', [linked, broken], requireLogin, []],
  ['is read again', [linked, broken], restore, restored],
  ['was read all along', [linked], restore, []],
  ['needs another log-in', [linked, broken, restored], requireLogin, broken],
])

test('the ten newest handles of a connection serve', () => {
  const handles = Array.from({ length: 11 }, (_, index) => `h${index}`)
  const state = fold(bankConnection, [linked, ...handles.map(issued)])
  expect(state?.handle_hashes).toEqual(handles.slice(1).reverse())
})

const transaction = (digit: string): BankTransaction => ({
  transaction_id: digit.repeat(24),
  bankconnect_transaction_id: `t${digit}`,
  bankconnect_account_id: 'a1',
  date: '2026-11-02',
  amount_cents: 100,
  direction: 'debit',
  currency: 'usd',
  pending: false,
  description: `sld1.employer/${OTHER}.AA` as Sealed,
})
const received = (chunk: number, digits: string, cursor: string | null, removed: readonly string[] = []) =>
  BankTransactionsReceived.of({
    ...owner,
    employer_id: EMPLOYER,
    carrier_id: null,
    chunk,
    cursor,
    received_at: at,
    changed: [...digits].map(transaction),
    removed: [...removed],
  })
const receive = (...of: Parameters<typeof received>) =>
  ({ type: 'Receive', data: received(...of).data }) as const

decisions(bankTransactions, [
  ['are received', [], receive(0, '12', 'next'), received(0, '12', 'next')],
  ['are received after others', [received(0, '1', 'x')], receive(1, '2', 'y'), received(1, '2', 'y')],
  ['are gone', [received(0, '1', 'x')], receive(1, '', 'x', [TENANT]), received(1, '', 'x', [TENANT])],
  ['are none yet', [], receive(0, '', null), []],
  ['are no new ones', [received(0, '1', 'x')], receive(1, '', 'x'), []],
  ['are no new ones at a later cursor', [received(0, '1', 'x')], receive(1, '', 'y'), received(1, '', 'y')],
  ['are not received twice', [received(0, '1', 'x')], receive(0, '1', 'x'), 'out_of_order'],
])

describe('transactions whose last chunk is missing', () => {
  const begun = [received(0, '1', 'x'), received(1, '23', null), received(2, '4', null)]
  test('are known, and not settled', () => {
    const state = fold(bankTransactions, begun)
    expect(state).toEqual({ chunks: 3, cursor: 'x', unsettled: ['2', '3', '4'].map((one) => one.repeat(24)) })
  })
  test('are settled with it', () => {
    const state = fold(bankTransactions, [...begun, received(3, '5', 'y')])
    expect(state).toEqual({ chunks: 4, cursor: 'y', unsettled: [] })
  })
})
