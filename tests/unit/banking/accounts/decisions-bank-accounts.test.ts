import { describe, expect, test } from 'vitest'
import { amountsOf } from '../../../../application/banking/accounts/account-verification.ts'
import {
  type AchAccountCommand,
  achAccount,
  VERIFICATION_MS,
} from '../../../../domain/banking/accounts/ach-account.ts'
import type { AchAccountEvent } from '../../../../domain/banking/accounts/ach-account-events.ts'
import {
  BankAccountChanged,
  BankAccountCreated,
  BankAccountDeleted,
  bankAccount,
} from '../../../../domain/banking/accounts/bank-account.ts'
import {
  BankNumbersDisabled,
  BankNumbersEnabled,
  disabledNumbers,
} from '../../../../domain/banking/accounts/disabled-numbers.ts'
import {
  PrimaryAccountChosen,
  PrimaryAccountCleared,
  primaryAccount,
} from '../../../../domain/banking/accounts/primary-account.ts'
import {
  VerificationStartCounted,
  verificationStarts,
} from '../../../../domain/banking/accounts/verification-starts.ts'
import { isoTime } from '../../../../domain/kernel/calendar.ts'
import { fold } from '../../../../domain/kernel/decider.ts'
import type { RejectionCode } from '../../../../domain/kernel/rejection-codes.ts'
import { type Decision, decisions, eventsOf } from '../../../support/decider-spec.ts'

// each row reads given, when, then
const [ID, OTHER, FIRST, SECOND] = ['a', 'b', '1', '2'].map((digit) => digit.repeat(24)) as [
  string,
  string,
  string,
  string,
]
const NOW = Date.UTC(2026, 10, 24, 17)
const at = isoTime(NOW)
const later = NOW + 60_000
const place = { tenant_id: ID, environment: 'live' } as const
const invalid = (code: RejectionCode) => ({ kind: 'invalid', code }) as const

// ---- metadata

const created = BankAccountCreated.of({
  bank_account_id: ID,
  ...place,
  user_id: 'u',
  name: 'Operating',
  bank_name: 'First Bank',
  employer_id: ID,
  carrier_id: null,
  connection_type: 'manual',
  primary: false,
  created_at: at,
})
const deleted = BankAccountDeleted.of({ bank_account_id: ID, at })
const rename = { type: 'Change', change: { name: 'Payroll', bank_name: 'First Bank' }, at: NOW } as const
decisions(bankAccount, [
  ['is created', [], { type: 'Create', data: created.data }, created],
  ['is created once', [created], { type: 'Create', data: created.data }, 'bank_account_exists'],
  [
    'is changed by what differs',
    [created],
    rename,
    BankAccountChanged.of({ bank_account_id: ID, name: 'Payroll', at }),
  ],
  ['that is so already stays', [created], { ...rename, change: { name: 'Operating' } }, []],
  ['is not changed before', [], rename, 'bank_account_not_found'],
  ['is deleted', [created], { type: 'Delete', at: NOW }, deleted],
  ['is deleted once', [created, deleted], { type: 'Delete', at: later }, []],
  ['that is deleted is not changed', [created, deleted], rename, 'bank_account_not_found'],
])

// ---- who is primary

const owner = { ...place, layer: 'ach_account', owner_type: 'employer', owner_id: ID } as const
const ofLayer = { primary_id: ID, layer: 'ach_account', owner_type: 'employer', owner_id: ID } as const
const chosen = (account_id: string, replaces: string | null) =>
  PrimaryAccountChosen.of({ ...ofLayer, ...place, account_id, replaces, at })
const cleared = (account_id: string) => PrimaryAccountCleared.of({ ...ofLayer, account_id, at })
const choose = (accountId: string, isOfCreation = false) =>
  ({ type: 'Choose', primaryId: ID, owner, accountId, isOfCreation, at: NOW }) as const
const clear = (accountId: string) => ({ type: 'Clear', primaryId: ID, owner, accountId, at: NOW }) as const
decisions(primaryAccount, [
  ['is chosen', [], choose(FIRST), chosen(FIRST, null)],
  ['is chosen once', [chosen(FIRST, null)], choose(FIRST), []],
  ['takes the place of another', [chosen(FIRST, null)], choose(SECOND), chosen(SECOND, FIRST)],
  [
    'is chosen by its creation once, which may be heard late',
    [chosen(FIRST, null), chosen(SECOND, FIRST)],
    choose(FIRST, true),
    [],
  ],
  ['is chosen again', [chosen(FIRST, null), chosen(SECOND, FIRST)], choose(FIRST), chosen(FIRST, SECOND)],
  ['is cleared, and none follows', [chosen(FIRST, null)], clear(FIRST), cleared(FIRST)],
  ['is cleared where it is so', [chosen(FIRST, null)], clear(SECOND), []],
])

// ---- credentials

const numbers = {
  account_ref: 'ach-account/x',
  fingerprint: ID,
  account_last4: '6789',
  account_type: 'checking',
} as const
const event = eventsOf(achAccount, { ach_account_id: ID, at })
const ach = (verified = false) =>
  event('AchAccountCreated', {
    ...place,
    owner_type: 'employer',
    owner_id: ID,
    account: numbers,
    routing_last4: '0021',
    bank_name: 'First Bank',
    nickname: null,
    is_primary: false,
    connection_type: 'manual',
    bank_account_id: null,
    verified,
    created_at: at,
  })
const started = event('AchAccountVerificationStarted', {
  verification_id: FIRST,
  expires_at: isoTime(NOW + VERIFICATION_MS),
})
const ofFirst = { ach_account_id: ID, verification_id: FIRST, at }
const sent = event('AchAccountMicroDepositsSent', ofFirst)
const refused = event('AchAccountMicroDepositsRefused', ofFirst)
const failed = (tries_left: number) => event('AchAccountVerificationFailed', { ...ofFirst, tries_left })
const ended: readonly AchAccountEvent[] = [ach(), started, sent, failed(2), failed(1), failed(0)]
const byDeposits = event('AchAccountVerified', { ...ofFirst, by: 'micro_deposits', note: null })
const byOperator = event('AchAccountVerified', {
  by: 'operator',
  verification_id: null,
  note: 'voided check',
})
const disabled = event('AchAccountDisabled', { return_code: 'R02' })
const frozen = event('AchAccountDisabled', { ...disabled.data, return_code: 'R16' })
const enabled = (status: 'active' | 'unverified') =>
  event('AchAccountEnabled', { reason: 'the block was lifted', status })
const enable = (isVerifiedByOther = false) =>
  ({ type: 'Enable', reason: 'the block was lifted', isVerifiedByOther, at: NOW }) as const
const achDeleted = event('AchAccountDeleted')
const removed = event('AchAccountNumbersRemoved')
const corrected = event('AchAccountCorrected', {
  change_code: 'C01',
  routing_last4: '0021',
  account: { ...numbers, fingerprint: OTHER, account_ref: 'ach-account/y', account_last4: '1111' },
})

const start = (verificationId: string, when = NOW) =>
  ({ type: 'StartVerification', verificationId, at: when }) as const
const tell = (amounts: readonly number[], verificationId = FIRST, when = NOW): AchAccountCommand => ({
  type: 'Verify',
  verificationId,
  amounts,
  expected: [7, 32],
  at: when,
})
const deposits = (isTaken: boolean, verificationId = FIRST) =>
  ({ type: 'RecordDeposits', verificationId, isTaken, at: NOW }) as const
const linked = (unverified_reason?: string) =>
  event('AchAccountCreated', {
    ...ach(unverified_reason === undefined).data,
    connection_type: 'bankconnect',
    ...(unverified_reason !== undefined && { unverified_reason }),
  })
const byLink = event('AchAccountVerified', { by: 'bank_link', verification_id: null, note: null })
const unverified = (reason: string) => event('AchAccountUnverified', { reason })
const hear = (unverifiedReason: string | null) => ({ type: 'HearOfLink', unverifiedReason, at: NOW }) as const
const identified = event('AchAccountIdentified', { persistent_fingerprint: SECOND })
const unlisted = event('AchAccountUnlisted')
const listed = event('AchAccountListed')
const unlist = { type: 'Unlist', at: NOW } as const
const attest = { type: 'Attest', note: 'voided check', at: NOW } as const
const disable = { type: 'Disable', return_code: 'R02', at: NOW } as const
const change = { type: 'Change', change: { nickname: 'Main', account_type: 'savings' }, at: NOW } as const
const correct = {
  ...({ type: 'Correct', changeCode: 'C01', routingLast4: '0021', at: NOW } as const),
  of: ach().data.account,
  account: corrected.data.account,
}
const remove = { type: 'Delete', at: NOW } as const
const secondStart = event('AchAccountVerificationStarted', { ...started.data, verification_id: SECOND })
decisions(achAccount, [
  ['is created', [], { type: 'Create', data: ach().data }, ach()],
  ['is created once', [ach()], { type: 'Create', data: ach().data }, 'ach_account_exists'],
  [
    'is changed by what differs',
    [ach()],
    change,
    event('AchAccountChanged', { nickname: 'Main', account_type: 'savings' }),
  ],
  ['that is so already stays', [ach()], { ...change, change: { nickname: null } }, []],
  [
    'is not created with a number in its name',
    [],
    { type: 'Create', data: { ...ach().data, nickname: 'No. 12346789' } },
    invalid('number_in_name'),
  ],
  ...['x56789', '021000021', '000123456789'].flatMap((name) =>
    [{ nickname: name }, { bank_name: `Bank ${name}` }].map(
      (named) =>
        [
          `is not given a number as a name: ${JSON.stringify(named)}`,
          ...[[ach()], { ...change, change: named }, invalid('number_in_name')],
        ] as unknown as Decision<AchAccountCommand, AchAccountEvent>,
    ),
  ),
  [
    'is called by the last digits',
    [ach()],
    { ...change, change: { nickname: 'x6789 of 0021' } },
    event('AchAccountChanged', { nickname: 'x6789 of 0021' }),
  ],
  ['is verified by deposits', [ach()], start(FIRST), started],
  ['is verified one at a time', [ach(), started], start(SECOND), 'verification_under_way'],
  ['is verified anew after three tries', ended, start(SECOND), secondStart],
  ['is verified anew after a refusal', [ach(), started, refused], start(SECOND), secondStart],
  [
    'is verified anew after two weeks',
    [ach(), started, sent],
    start(SECOND, NOW + VERIFICATION_MS),
    event('AchAccountVerificationStarted', {
      verification_id: SECOND,
      at: isoTime(NOW + VERIFICATION_MS),
      expires_at: isoTime(NOW + 2 * VERIFICATION_MS),
    }),
  ],
  ['that is active is not verified', [ach(true)], start(FIRST), 'ach_account_verified'],
  ['that is disabled is not verified', [ach(), frozen], start(FIRST), 'ach_account_disabled'],
  ['of which a return says that it is closed is verified anew', [ach(), disabled], start(FIRST), started],
  [
    'that was closed is told the amounts, and stays disabled',
    [ach(true), disabled, started, sent],
    tell([7, 32]),
    byDeposits,
  ],
  [
    'that was closed and verified anew is not verified again',
    [ach(), disabled, started, sent, byDeposits],
    start(SECOND),
    'ach_account_verified',
  ],
  ['has its deposits sent', [ach(), started], deposits(true), sent],
  ['has them sent once', [ach(), started, sent], deposits(true), []],
  ['has them refused', [ach(), started], deposits(false), refused],
  ['has them come back', [ach(), started, sent], deposits(false), refused],
  ['has them come back once', [ach(), started, sent, refused], deposits(false), []],
  ['has none sent that came back', [ach(), started, refused], deposits(true), []],
  ['that is verified stays so when they come back', [ach(), started, sent, byDeposits], deposits(false), []],
  ['hears nothing of other deposits', [ach(), started], deposits(true, SECOND), []],
  ['that its bank lists no more is unlisted', [linked()], unlist, unlisted],
  ['is unlisted once', [linked(), unlisted], unlist, []],
  ['that was entered by hand is no bank’s to unlist', [ach()], unlist, []],
  ['that its bank lists again is listed', [linked(), unlisted], hear(null), listed],
  [
    'that its bank lists again is not vouched for unasked',
    [linked(), unlisted],
    hear('pending'),
    [listed, unverified('pending')],
  ],
  ['learns which account it is', [linked()], { ...hear(null), persistentFingerprint: SECOND }, identified],
  ['learns it once', [linked(), identified], { ...hear(null), persistentFingerprint: SECOND }, []],
  ['is told the amounts', [ach(), started, sent], tell([7, 32]), byDeposits],
  ['is told them in either order', [ach(), started, sent], tell([32, 7]), byDeposits],
  ['is told them before the bank has answered', [ach(), started], tell([7, 32]), byDeposits],
  ['is told them again, and is verified', [ach(), started, sent, byDeposits], tell([7, 32]), []],
  [
    'is not told others afterwards',
    [ach(), started, sent, byDeposits],
    tell([7, 33]),
    'ach_account_verified',
  ],
  ['counts wrong amounts', [ach(), started, sent], tell([7, 33]), failed(2)],
  ['takes one amount twice for wrong', [ach(), started, sent], tell([7, 7]), failed(2)],
  ['counts them to the end', [ach(), started, sent, failed(2), failed(1)], tell([1, 2]), failed(0)],
  ['is told no amounts after three tries', ended, tell([7, 32]), 'no_verification'],
  [
    'is told none after two weeks',
    [ach(), started, sent],
    tell([7, 32], FIRST, NOW + VERIFICATION_MS),
    'no_verification',
  ],
  ['takes none of the amounts of before', [ach(), started, sent], tell([7, 32], SECOND), 'no_verification'],
  ['takes no amounts where none were sent', [ach()], tell([7, 32], ''), 'no_verification'],
  ['that is linked is active once the bank link vouches for it', [linked('unsent')], hear(null), byLink],
  ['that is linked is active until it does not', [linked()], hear('unsent'), unverified('unsent')],
  ['that is linked and active stays so', [linked()], hear(null), []],
  ['that is linked keeps why it is unverified', [linked('unsent')], hear('unsent'), []],
  ['that is linked is unverified for another reason', [linked('unsent')], hear('x'), unverified('x')],
  [
    'that an operator attests is active, whatever the link says',
    [linked('unsent'), byOperator],
    hear('x'),
    [],
  ],
  ['that is disabled is not vouched for anew', [linked('unsent'), disabled], hear(null), []],
  [
    'that is disabled hears that its link vouches for it no more',
    [linked(), frozen],
    hear('x'),
    unverified('x'),
  ],
  ['that is disabled hears it once', [linked(), frozen, unverified('x')], hear('x'), []],
  ['that is disabled stays what an operator attested', [linked(), byOperator, frozen], hear('x'), []],
  [
    'is enabled, and unverified where its link vouches for it no more',
    [linked(), frozen, unverified('x')],
    enable(),
    enabled('unverified'),
  ],
  ['that was entered by hand hears of no link', [ach()], hear(null), []],
  ['is attested', [ach()], attest, byOperator],
  ['is attested once', [ach(), byOperator], attest, []],
  ['that the bank link alone vouches for is attested', [linked()], attest, byOperator],
  ['that is disabled is not attested', [ach(), frozen], attest, 'ach_account_disabled'],
  ['of which a return says that it is closed is attested', [ach(true), disabled], attest, byOperator],
  ['that was closed is attested once', [ach(), disabled, byOperator], attest, []],
  ['is disabled', [ach()], disable, disabled],
  ['is disabled once', [ach(), disabled], { ...disable, return_code: 'R03' }, []],
  ['is disabled by the code that says more', [ach(), frozen], disable, disabled],
  ['is not by one that says less', [ach(), disabled], { ...disable, return_code: 'R16' }, []],
  ['is disabled anew when it was verified since', [ach(), disabled, byOperator], disable, disabled],
  ['is enabled, and verified as before', [ach(true), frozen], enable(), enabled('active')],
  ['is enabled, and unverified as before', [ach(), frozen], enable(), enabled('unverified')],
  ['is enabled once', [ach(), frozen, enabled('unverified')], enable(), []],
  ['that was not disabled is enabled', [ach()], enable(), []],
  ['is disabled again', [ach(), frozen, enabled('unverified')], disable, disabled],
  ...['R02', 'R03', 'R04', 'R12', 'R13', 'R28'].map((code): Decision<AchAccountCommand, AchAccountEvent> => {
    return [
      `is not enabled after ${code}`,
      [ach(true), event('AchAccountDisabled', { ...disabled.data, return_code: code })],
      enable(),
      'ach_account_unverified',
    ]
  }),
  ['is enabled once it was verified anew', [ach(), disabled, byOperator], enable(), enabled('active')],
  [
    'is not enabled when another return came since',
    [ach(), disabled, byOperator, disabled],
    enable(),
    'ach_account_unverified',
  ],
  [
    'is enabled where another one with its numbers was verified anew',
    [ach(), disabled],
    enable(true),
    enabled('unverified'),
  ],
  ['that is deleted is not enabled', [ach(), frozen, achDeleted], enable(), 'ach_account_not_found'],
  ['that was deleted is disabled', [ach(), achDeleted], disable, disabled],
  [
    'has its numbers read',
    [ach()],
    { type: 'RecordRead', purpose: 'micro_deposits', at: NOW },
    event('AchAccountNumbersRead', { purpose: 'micro_deposits' }),
  ],
  ['is corrected', [ach()], correct, corrected],
  ['is corrected once', [ach(), corrected], correct, []],
  [
    'that is another meanwhile is not corrected',
    [ach(), event('AchAccountChanged', { account_type: 'savings' })],
    correct,
    [],
  ],
  [
    'is corrected where only its type was wrong',
    [ach(), corrected],
    {
      ...correct,
      of: corrected.data.account,
      account: { ...corrected.data.account, account_type: 'savings' },
    },
    event('AchAccountCorrected', {
      ...corrected.data,
      account: { ...corrected.data.account, account_type: 'savings' },
    }),
  ],
  ['is deleted', [ach()], remove, achDeleted],
  ['is deleted once', [ach(), achDeleted], remove, []],
  ['that is deleted is not changed', [ach(), achDeleted], change, 'ach_account_not_found'],
  ['that is deleted is not attested', [ach(), achDeleted], attest, 'ach_account_not_found'],
  ['loses its numbers', [ach(), achDeleted], { type: 'RecordRemoved', at: NOW }, removed],
  ['loses them once', [ach(), achDeleted, removed], { type: 'RecordRemoved', at: NOW }, []],
  ['that is there keeps them', [ach()], { type: 'RecordRemoved', at: NOW }, []],
])

// ---- how often the same numbers are verified

const DAY = 86_400_000
const begun = (ach_account_id: string, days: number, follows: string | null = null) =>
  VerificationStartCounted.of({
    starts_id: ID,
    ...place,
    ach_account_id,
    follows,
    at: isoTime(NOW + days * DAY),
  })
const count = (ach_account_id: string, days: number, follows: string | null = null) => {
  const { at: _at, ...data } = begun(ach_account_id, days, follows).data
  return { type: 'Count', data, at: NOW + days * DAY } as const
}
const three = [begun(ID, 0), begun(ID, 1, FIRST), begun(OTHER, 2)]
decisions(verificationStarts, [
  ['is counted', [], count(ID, 0), begun(ID, 0)],
  ['is counted once of many at once', [begun(ID, 0)], count(ID, 0), []],
  ['is counted of whatever account', [begun(ID, 0)], count(OTHER, 1), begun(OTHER, 1)],
  ['is none for a fourth time in two weeks', three, count(FIRST, 13), 'too_many_verifications'],
  ['is one again after that', three, count(FIRST, 14), begun(FIRST, 14)],
  [
    'is one again for each that is two weeks old',
    [...three, begun(FIRST, 14)],
    count(SECOND, 14),
    'too_many_verifications',
  ],
])

// ---- numbers that a return disabled

const returnedNumbers = { numbers_id: ID, ...place, fingerprint: ID, return_code: 'R29' }
const numbersDisabled = BankNumbersDisabled.of({ ...returnedNumbers, at })
const disableNumbers = { type: 'Disable', data: returnedNumbers, at: NOW } as const
const closed = { ...returnedNumbers, return_code: 'R02' }
const numbersClosed = BankNumbersDisabled.of({ ...closed, at })
const closeNumbers = { ...disableNumbers, data: closed }
const numbersEnabled = BankNumbersEnabled.of({ numbers_id: ID, reason: 'the block was lifted', at })
const enableNumbers = { type: 'Enable', reason: 'the block was lifted', at: NOW } as const
decisions(disabledNumbers, [
  ['are disabled', [], disableNumbers, numbersDisabled],
  [
    'are disabled once, by the first return',
    [numbersDisabled],
    { ...disableNumbers, data: { ...returnedNumbers, return_code: 'R16' } },
    [],
  ],
  ['are disabled by the return that says more', [numbersDisabled], closeNumbers, numbersClosed],
  ['are enabled', [numbersDisabled], enableNumbers, numbersEnabled],
  ['are enabled once', [numbersDisabled, numbersEnabled], enableNumbers, []],
  ['are disabled again', [numbersDisabled, numbersEnabled], closeNumbers, numbersClosed],
])

describe('an ACH account', () => {
  test('is unverified until it is verified, and disabled until it is enabled, verified anew or not', () => {
    const status = (...events: readonly AchAccountEvent[]) => {
      const state = fold(achAccount, events)!
      return [state.status, state.verified]
    }
    expect(status(ach())).toEqual(['unverified', false])
    expect(status(ach(true))).toEqual(['active', true])
    expect(status(...ended)).toEqual(['unverified', false])
    expect(status(ach(), byOperator)).toEqual(['active', true])
    expect(status(ach(), byOperator, disabled)).toEqual(['disabled', true])
    expect(status(ach(), disabled, byOperator)).toEqual(['disabled', true])
    expect(status(ach(), disabled, byOperator, enabled('active'))).toEqual(['active', true])
    expect(status(linked(), disabled, unverified('x'))).toEqual(['disabled', false])
  })

  test('remembers where the numbers before a correction are', () => {
    const { account_refs } = fold(achAccount, [ach(), corrected])!
    expect(account_refs).toEqual(['ach-account/x', 'ach-account/y'])
  })
})

test('the amounts of a verification are two different ones under one dollar, the same each time', () => {
  const personalData = { fingerprint: (_: string, value: string) => value } as never
  const amounts = (verification_id: string) => amountsOf({ personalData }, { verification_id })
  const hex = (n: number) => (n * 7_919).toString(16).padStart(12, '0')
  for (let n = 0; n < 500; n += 1) {
    const id = `${hex(n)}${hex(n * 31)}`
    const [first, second] = amounts(id)
    expect(amounts(id)).toEqual([first, second])
    expect(first).not.toBe(second)
    for (const one of [first, second]) expect(one >= 1 && one <= 99).toBe(true)
  }
})
