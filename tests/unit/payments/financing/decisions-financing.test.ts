import { describe, expect, test } from 'vitest'
import { simulatedQuotes } from '../../../../application/payments/financing/simulated-quotes.ts'
import { isoTime } from '../../../../domain/kernel/calendar.ts'
import { fold } from '../../../../domain/kernel/decider.ts'
import type { Sealed } from '../../../../domain/kernel/sealed.ts'
import {
  type FinancingSessionCommand,
  financingSession,
  financingStatusAt,
  isActive,
  sessionStatusAt,
} from '../../../../domain/payments/financing/financing-session.ts'
import type { FinancingSessionEvent } from '../../../../domain/payments/financing/financing-session-events.ts'
import {
  DEFAULT_FINANCING,
  FinancingSettingsChanged,
  financingSettings,
} from '../../../../domain/payments/financing/financing-settings.ts'
import { decisions, eventsOf } from '../../../support/decider-spec.ts'

// each row reads given, when, then
const ID = 'a'.repeat(24)
const START = Date.UTC(2026, 0, 15, 12)
const END = START + 86_400_000
const at = START + 60_000
const time = isoTime(at)
const sealed = (text: string) => `sld1.employer/${ID}.${text}` as Sealed

const event = eventsOf(financingSession, { financing_session_id: ID })
const created = event('FinancingSessionCreated', {
  tenant_id: ID,
  environment: 'sandbox',
  client_id: 'service_test_cli_1',
  employer_id: ID,
  carrier_id: ID,
  policy_id: ID,
  amount_cents: 10_000,
  premium_cents: 10_000,
  fee_cents: 0,
  line_items: [{ label: 'Premium', amount_cents: 10_000 }],
  description: null,
  customer: { name: sealed('n'), email: sealed('e'), phone: null },
  single_use: true,
  config_version: 1,
  created_by: null,
  request_fingerprint: 'one',
  access_token_hash: 'h1',
  checkout_token_hash: 'h2',
  created_at: isoTime(START),
  expires_at: isoTime(END),
})
const insured = {
  business_name: sealed('b'),
  address: sealed('a'),
  city: sealed('c'),
  state: sealed('s'),
  zip_code: sealed('z'),
}
const requested = event('FinancingRequested', { request_fingerprint: 'asked', insured, requested_at: time })
const begun = (attempt = 1) => event('FinancingSubmissionBegun', { attempt, begun_at: time })
const unsent = (attempt = 1) => event('FinancingSubmissionUnsent', { attempt, at: time })
const submitted = event('FinancingSubmitted', { attempt: 1, provider_request_id: 'fr_1', submitted_at: time })
const held = (reason: 'no_answer' | 'interrupted' | 'refused' | 'review') =>
  event('FinancingHeld', { reason, held_at: time })
const quotes = simulatedQuotes(ID, 10_000, 2)
const received = event('FinancingQuotesReceived', { quotes: [...quotes], received_at: time })
const expired = (by: 'time' | 'provider') => event('FinancingExpired', { by, expired_at: time })
const reported = (notice_id: string, amount_cents: number, quote_key: string | null) =>
  event('FinancingDownPaymentReported', { notice_id, amount_cents, quote_key, reported_at: time })
const invitation = { to: sealed('to'), to_fingerprint: 'f', page_address: 'https://pay.example/pay/{token}' }
const inviting = event('FinancingInvitationBegun', { ...invitation, begun_at: time })
const invited = (status: 'sent' | 'failed') => event('FinancingInvitationEnded', { status, at: time })
const cancelled = event('FinancingSessionCancelled', { cancelled_at: time })

const waiting = [created, requested, begun(), submitted]
const quoted = [...waiting, received]
const down = quotes[0]!.down_payment_cents
const paid = [...quoted, reported('n-1', down, quotes[0]!.quote_key)]

const command = <Type extends FinancingSessionCommand['type']>(
  type: Type,
  fields: Omit<Extract<FinancingSessionCommand, { type: Type }>, 'type' | 'at'>,
  when = at,
) => ({ type, ...fields, at: when }) as unknown as FinancingSessionCommand
const create = (request_fingerprint: string): FinancingSessionCommand => ({
  type: 'Create',
  data: { ...created.data, request_fingerprint },
})
const request = (fingerprint = 'asked', when = at) => command('Request', { fingerprint, insured }, when)
const begin = (when = at) => command('BeginSubmission', {}, when)
const end = (outcome: Extract<FinancingSessionCommand, { type: 'EndSubmission' }>['outcome'], attempt = 1) =>
  command('EndSubmission', { attempt, outcome })
const receive = (when = at) => command('ReceiveQuotes', { quotes }, when)
const hold = command('Hold', {})
const expire = (by: 'time' | 'provider', when = at) => command('Expire', { by }, when)
const report = (noticeId: string, amountCents: number) =>
  command('ReportDownPayment', { noticeId, amountCents })
const invite = (when = at) => command('BeginInvitation', { invitation }, when)
const ended = command('EndInvitation', { status: 'sent' })
const cancel = (when = at) => command('Cancel', {}, when)

decisions(financingSession, [
  ['is created', [], create('one'), created],
  ['is the same for the same request', [created], create('one'), []],
  ['is not another one', [created], create('two'), 'idempotency_key_reused'],
  ['must be there', [], hold, 'financing_session_not_found'],

  ['asks for quotes', [created], request(), requested],
  ['asks once', [created, requested], request(), []],
  ['asks for one thing', [created, requested], request('other'), 'idempotency_key_reused'],
  ['asks for nothing when it is closed', [created, cancelled], request(), 'financing_session_closed'],
  ['asks for nothing when its time is over', [created], request('asked', END), []],

  ['is begun to be sent', [created, requested], begin(), begun()],
  ['is held where a sending has no end', [created, requested, begun()], begin(), held('interrupted')],
  ['is sent once', waiting, begin(), []],
  ['is not sent when it is held', [created, requested, begun(), held('no_answer')], begin(), []],
  ['is sent again when nothing got there', [created, requested, begun(), unsent()], begin(), begun(2)],
  ['is not sent when it is closed', [created, requested, cancelled], begin(), []],
  ['is not sent when its time is over', [created, requested], begin(END), []],
  ['is nothing to send', [created], begin(), []],

  [
    'is with the provider',
    [created, requested, begun()],
    end({ result: 'submitted', providerRequestId: 'fr_1' }),
    submitted,
  ],
  ['did not get there', [created, requested, begun()], end({ result: 'unsent' }), unsent()],
  [
    'may have got there',
    [created, requested, begun()],
    end({ result: 'held', reason: 'no_answer' }),
    held('no_answer'),
  ],
  [
    'stays held whatever is heard later',
    [created, requested, begun(), held('interrupted')],
    end({ result: 'submitted', providerRequestId: 'fr_1' }),
    [],
  ],
  [
    'hears of its present attempt only',
    [created, requested, begun(), unsent(), begun(2)],
    end({ result: 'unsent' }),
    [],
  ],

  ['gets quotes', waiting, receive(), received],
  ['keeps the quotes it has', quoted, receive(), []],
  ['gets none before it was sent', [created, requested], receive(), 'financing_not_pending'],
  ['gets none unasked', [created], receive(), 'financing_not_pending'],
  ['gets none when it is held', [...waiting, held('review')], receive(), 'financing_not_pending'],
  ['gets none when its time is over', waiting, receive(END), 'financing_not_pending'],
  ['gets none when it is closed', [...waiting, cancelled], receive(), 'financing_session_closed'],

  ['is looked at', waiting, hold, held('review')],
  ['is looked at once', [...waiting, held('review')], hold, []],
  ['is not looked at with quotes', quoted, hold, 'financing_not_pending'],

  ['expires at the provider', quoted, expire('provider'), expired('provider')],
  ['expires once', [...quoted, expired('provider')], expire('provider'), []],
  ['has nothing to expire', [created], expire('provider'), 'financing_not_pending'],
  [
    'does not expire when it is held',
    [...waiting, held('review')],
    expire('provider'),
    'financing_not_pending',
  ],
  ['does not expire when it is paid', paid, expire('provider'), 'financing_not_pending'],
  [
    'does not expire when it is closed',
    [...quoted, cancelled],
    expire('provider'),
    'financing_session_closed',
  ],
  [
    'expires in time',
    [created],
    expire('time', END),
    event('FinancingExpired', { by: 'time', expired_at: isoTime(END) }),
  ],
  ['expires in time unless it is closed', [created, cancelled], expire('time', END), []],

  ['hears of a down payment', quoted, report('n-1', down), reported('n-1', down, quotes[0]!.quote_key)],
  ['hears of it once', paid, report('n-1', 7), []],
  ['hears of another amount', quoted, report('n-2', 7), reported('n-2', 7, null)],
  [
    'hears of it when it is closed',
    [...quoted, cancelled],
    report('n-1', down),
    reported('n-1', down, quotes[0]!.quote_key),
  ],
  ['hears of none without quotes', waiting, report('n-1', 7), 'financing_without_quotes'],

  ['invites', quoted, invite(), inviting],
  ['invites once', [...quoted, inviting], invite(), []],
  ['invites to quotes only', waiting, invite(), 'financing_without_quotes'],
  ['invites in time', quoted, invite(END), 'financing_without_quotes'],
  ['has invited', [...quoted, inviting], ended, invited('sent')],
  ['stays as it was sent', [...quoted, inviting, invited('failed')], ended, []],

  ['is cancelled', quoted, cancel(), cancelled],
  ['is cancelled once', [created, cancelled], cancel(END), []],
  ['is not cancelled when its time is over', [created], cancel(END), 'payment_session_expired'],
])

describe('a financing session reads', () => {
  const state = (...events: readonly FinancingSessionEvent[]) => fold(financingSession, events)!
  test.each([
    ['not_started', [created], at, 'pending', false],
    ['expired', [created], END, 'expired', false],
    ['pending', waiting, at, 'pending', false],
    ['expired', waiting, END, 'expired', false],
    ['quote_ready', quoted, END - 1, 'pending', true],
    ['expired', quoted, END, 'expired', false],
    ['expired', [...quoted, expired('provider')], at, 'expired', false],
    ['quote_ready', [...quoted, cancelled], at, 'cancelled', false],
    ['on_hold', [...waiting, held('review')], END, 'expired', false],
    ['payment_reported', paid, at, 'pending', true],
    ['payment_reported', paid, END, 'expired', false],
    ['quote_ready', [...quoted, reported('n', 7, null)], at, 'pending', true],
    [
      'expired',
      [...quoted, expired('time'), reported('n', down, quotes[0]!.quote_key)],
      at,
      'expired',
      false,
    ],
  ] as const)('%s', (status, events, when, ofSession, active) => {
    const read = state(...events)
    expect([financingStatusAt(read, when), sessionStatusAt(read, when), isActive(read, when)]).toEqual([
      ...[status, ofSession, active],
    ])
  })
})

describe('the quotes of the simulator', () => {
  test.each([[50], [99], [10_000], [105_001], [100_000_000]])('of %i cents sum up', (amount) => {
    const made = simulatedQuotes(ID, amount, 20)
    expect(simulatedQuotes(ID, amount, 20)).toEqual(made)
    expect(new Set(made.map(({ quote_key }) => quote_key)).size).toBe(20)
    for (const one of made) {
      expect(one.down_payment_cents + one.financed_cents).toBe(amount)
      const owed = one.financed_cents + one.finance_charge_cents
      expect(one.installment_cents * (one.installments - 1) + one.last_installment_cents).toBe(owed)
      expect(one.last_installment_cents).toBeGreaterThanOrEqual(one.installment_cents)
    }
  })
})

const recipient = (fingerprint: string, text: string) => ({
  address: `sld1.person/${ID}.${text}` as Sealed,
  fingerprint,
})
const settings = { ...DEFAULT_FINANCING, recipients: [recipient('f', 'one')] }
const set = (to: typeof settings) => ({ type: 'Set', tenantId: ID, settings: to }) as const
const changed = FinancingSettingsChanged.of({ tenant_id: ID, settings })
decisions(financingSettings, [
  ['are set', [], set(settings), changed],
  ['are as they were', [changed], set({ ...settings, recipients: [recipient('f', 'sealed-anew')] }), []],
  ['are at their defaults', [], set({ ...DEFAULT_FINANCING }), []],
])
