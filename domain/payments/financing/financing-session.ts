import { isoTime } from '../../kernel/calendar.ts'
import type { Decider } from '../../kernel/decider.ts'
import { type Rejection, reject } from '../../kernel/rejection.ts'
import {
  type FinancingSessionData as DataOf,
  FinancingDownPaymentReported,
  FinancingExpired,
  FinancingHeld,
  FinancingInvitationBegun,
  FinancingInvitationEnded,
  type FinancingQuote,
  FinancingQuotesReceived,
  FinancingRequested,
  FinancingSessionCancelled,
  FinancingSessionCreated,
  type FinancingSessionEvent,
  FinancingSubmissionBegun,
  FinancingSubmissionUnsent,
  FinancingSubmitted,
  financingSessionEvents,
} from './financing-session-events.ts'

/**
 * A test session for premium financing. It asks a provider for quotes once: a request that may have got there is never
 * sent again. Its stream id derives from tenant, environment and idempotency key, so that the stream is its own claim.
 */
export const FINANCING_STATUSES = [
  'not_started',
  'pending',
  'quote_ready',
  'on_hold',
  'expired',
  'payment_reported',
] as const
export type FinancingStatus = (typeof FINANCING_STATUSES)[number]

/** What a provider was asked for. */
export interface FinancingRequest
  extends Pick<DataOf<'FinancingRequested'>, 'request_fingerprint' | 'insured'> {
  readonly status: Extract<FinancingStatus, 'pending' | 'quote_ready' | 'on_hold' | 'payment_reported'>
  /** How often it was begun to be sent. */
  readonly attempts: number
  /** Its sending was begun, and the outcome is unknown. */
  readonly is_sending: boolean
  readonly provider_request_id: string | null
  readonly hold_reason: DataOf<'FinancingHeld'>['reason'] | null
  readonly quotes: readonly FinancingQuote[]
}

export interface FinancingInvitation
  extends Pick<DataOf<'FinancingInvitationBegun'>, 'to' | 'to_fingerprint' | 'page_address'> {
  /** Of what is known last. */
  readonly at: string
  /** Null: the outcome is unknown. */
  readonly status: 'sent' | 'failed' | null
}

export interface FinancingSession extends DataOf<'FinancingSessionCreated'> {
  readonly request: FinancingRequest | null
  readonly notices: readonly Pick<
    DataOf<'FinancingDownPaymentReported'>,
    'notice_id' | 'amount_cents' | 'quote_key'
  >[]
  readonly invitation: FinancingInvitation | null
  readonly expired_at: string | null
  readonly cancelled_at: string | null
  readonly updated_at: string
}

/** What came of sending a request. */
export type SubmissionResult =
  | { readonly result: 'unsent' }
  | { readonly result: 'submitted'; readonly providerRequestId: string }
  | { readonly result: 'held'; readonly reason: 'no_answer' | 'refused' }

/** Times are epoch milliseconds. */
export type FinancingSessionCommand =
  | { readonly type: 'Create'; readonly data: DataOf<'FinancingSessionCreated'> }
  | {
      readonly type: 'Request'
      readonly fingerprint: string
      readonly insured: FinancingRequest['insured']
      readonly at: number
    }
  | { readonly type: 'BeginSubmission'; readonly at: number }
  | {
      readonly type: 'EndSubmission'
      readonly attempt: number
      readonly outcome: SubmissionResult
      readonly at: number
    }
  | { readonly type: 'ReceiveQuotes'; readonly quotes: readonly FinancingQuote[]; readonly at: number }
  | { readonly type: 'Hold'; readonly at: number }
  | { readonly type: 'Expire'; readonly by: 'time' | 'provider'; readonly at: number }
  | {
      readonly type: 'ReportDownPayment'
      readonly noticeId: string
      readonly amountCents: number
      readonly at: number
    }
  | {
      readonly type: 'BeginInvitation'
      readonly invitation: Pick<FinancingInvitation, 'to' | 'to_fingerprint' | 'page_address'>
      readonly at: number
    }
  | { readonly type: 'EndInvitation'; readonly status: 'sent' | 'failed'; readonly at: number }
  | { readonly type: 'Cancel'; readonly at: number }

/** Whether its time is over, at a moment in epoch milliseconds. */
function isOver({ expired_at, expires_at }: FinancingSession, now: number): boolean {
  return expired_at !== null || Date.parse(expires_at) <= now
}

/** How the financing stands, at a moment in epoch milliseconds. */
export function financingStatusAt(state: FinancingSession, now: number): FinancingStatus {
  const status = state.request?.status ?? 'not_started'
  if (status === 'on_hold' || status === 'payment_reported') return status
  return isOver(state, now) ? 'expired' : status
}

/** How the session stands that it is asked for in. */
export function sessionStatusAt(state: FinancingSession, now: number): 'pending' | 'cancelled' | 'expired' {
  if (state.cancelled_at !== null) return 'cancelled'
  return isOver(state, now) ? 'expired' : 'pending'
}

/** Whether the quotes can still be used: the session is open, and so is the request. */
export function isActive(state: FinancingSession, now: number): boolean {
  const hasQuotes = state.request?.status === 'quote_ready' || state.request?.status === 'payment_reported'
  return hasQuotes && sessionStatusAt(state, now) === 'pending'
}

/** Whether the provider is still to get the request. */
export function isUnsent(state: FinancingSession, now: number): boolean {
  const { request } = state
  const isPending = request?.status === 'pending' && sessionStatusAt(state, now) === 'pending'
  return isPending && request.provider_request_id === null
}

/** Why nothing more can be asked of a session that was cancelled. */
export function sessionClosed(): Rejection {
  return reject('conflict', 'financing_session_closed', 'The session was cancelled')
}

/** Why a session of a key is not what a request asks for. */
export function otherRequest({ financing_session_id: id }: FinancingSession): Rejection {
  const why = `The idempotency_key was used for another request: that of ${id}`
  return { ...reject('conflict', 'idempotency_key_reused', why, 'idempotency_key'), ids: { id } }
}

export const financingSession: Decider<
  FinancingSession | null,
  FinancingSessionCommand,
  FinancingSessionEvent
> = {
  category: 'financingSession',
  events: financingSessionEvents,
  initialState: null,
  evolve(state, event) {
    if (event.type === 'FinancingSessionCreated') {
      const { data } = event
      const nothing = { request: null, notices: [], invitation: null, expired_at: null, cancelled_at: null }
      return { ...data, ...nothing, updated_at: data.created_at }
    }
    const before = state!
    switch (event.type) {
      case 'FinancingRequested': {
        const { request_fingerprint, insured, requested_at: updated_at } = event.data
        const request: FinancingRequest = {
          request_fingerprint,
          insured,
          status: 'pending',
          attempts: 0,
          is_sending: false,
          provider_request_id: null,
          hold_reason: null,
          quotes: [],
        }
        return { ...before, request, updated_at }
      }
      case 'FinancingSubmissionBegun':
        return requesting(before, event.data.begun_at, { attempts: event.data.attempt, is_sending: true })
      case 'FinancingSubmissionUnsent':
        return requesting(before, event.data.at, { is_sending: false })
      case 'FinancingSubmitted': {
        const { provider_request_id, submitted_at } = event.data
        return requesting(before, submitted_at, { is_sending: false, provider_request_id })
      }
      case 'FinancingHeld': {
        const { reason: hold_reason, held_at } = event.data
        return requesting(before, held_at, { status: 'on_hold', is_sending: false, hold_reason })
      }
      case 'FinancingQuotesReceived': {
        const { quotes, received_at } = event.data
        return requesting(before, received_at, { status: 'quote_ready', quotes })
      }
      case 'FinancingExpired': {
        const { expired_at } = event.data
        return { ...before, expired_at, updated_at: expired_at }
      }
      case 'FinancingDownPaymentReported':
        return paid(before, event.data)
      case 'FinancingInvitationBegun': {
        const { to, to_fingerprint, page_address, begun_at: at } = event.data
        return {
          ...before,
          invitation: { to, to_fingerprint, page_address, at, status: null },
          updated_at: at,
        }
      }
      case 'FinancingInvitationEnded': {
        const { status, at } = event.data
        return { ...before, invitation: { ...before.invitation!, status, at }, updated_at: at }
      }
      case 'FinancingSessionCancelled': {
        const { cancelled_at } = event.data
        return { ...before, cancelled_at, updated_at: cancelled_at }
      }
    }
  },
  decide(command, state): readonly FinancingSessionEvent[] | Rejection {
    if (command.type === 'Create') {
      if (state === null) return [FinancingSessionCreated.of(command.data)]
      return state.request_fingerprint === command.data.request_fingerprint ? [] : otherRequest(state)
    }
    if (!state) return reject('not_found', 'financing_session_not_found', 'There is no such session')
    const { financing_session_id, request } = state
    const session = { financing_session_id }
    const at = isoTime(command.at)
    switch (command.type) {
      case 'Request': {
        const { fingerprint: request_fingerprint, insured } = command
        if (request) return request.request_fingerprint === request_fingerprint ? [] : otherRequest(state)
        if (state.cancelled_at !== null) return sessionClosed()
        // it stays expired, and nothing is asked for
        if (isOver(state, command.at)) return []
        return [FinancingRequested.of({ ...session, request_fingerprint, insured, requested_at: at })]
      }
      case 'BeginSubmission': {
        if (request?.status !== 'pending' || request.provider_request_id !== null) return []
        if (request.is_sending) return [FinancingHeld.of({ ...session, reason: 'interrupted', held_at: at })]
        if (sessionStatusAt(state, command.at) !== 'pending') return []
        return [FinancingSubmissionBegun.of({ ...session, attempt: request.attempts + 1, begun_at: at })]
      }
      case 'EndSubmission': {
        const { attempt, outcome } = command
        // what was held meanwhile stays so: somebody looks at it
        if (request?.attempts !== attempt || !request.is_sending) return []
        switch (outcome.result) {
          case 'unsent':
            return [FinancingSubmissionUnsent.of({ ...session, attempt, at })]
          case 'held':
            return [FinancingHeld.of({ ...session, reason: outcome.reason, held_at: at })]
          case 'submitted': {
            const { providerRequestId: provider_request_id } = outcome
            return [FinancingSubmitted.of({ ...session, attempt, provider_request_id, submitted_at: at })]
          }
        }
        break
      }
      case 'ReceiveQuotes': {
        // the batch that is saved stays
        if (request && request.quotes.length > 0) return []
        const refusal = notAwaited(state, command.at)
        if (refusal) return refusal
        return [FinancingQuotesReceived.of({ ...session, quotes: [...command.quotes], received_at: at })]
      }
      case 'Hold': {
        if (request?.status === 'on_hold') return []
        const refusal = notAwaited(state, command.at)
        return refusal ?? [FinancingHeld.of({ ...session, reason: 'review', held_at: at })]
      }
      case 'Expire':
        return expire(command, state)
      case 'ReportDownPayment': {
        const { noticeId: notice_id, amountCents: amount_cents } = command
        if (state.notices.some((notice) => notice.notice_id === notice_id)) return []
        if (!request || request.quotes.length === 0) return noQuotes()
        const quote = request.quotes.find((one) => one.down_payment_cents === amount_cents)
        const notice = { notice_id, amount_cents, quote_key: quote?.quote_key ?? null, reported_at: at }
        return [FinancingDownPaymentReported.of({ ...session, ...notice })]
      }
      case 'BeginInvitation': {
        if (state.invitation) return []
        if (request?.status !== 'quote_ready' || !isActive(state, command.at)) return noQuotes()
        return [FinancingInvitationBegun.of({ ...session, ...command.invitation, begun_at: at })]
      }
      case 'EndInvitation': {
        if (state.invitation?.status !== null) return []
        return [FinancingInvitationEnded.of({ ...session, status: command.status, at })]
      }
      case 'Cancel': {
        if (state.cancelled_at !== null) return []
        if (!isOver(state, command.at))
          return [FinancingSessionCancelled.of({ ...session, cancelled_at: at })]
        const why = 'The payment session has expired: it cannot be cancelled'
        return reject('conflict', 'payment_session_expired', why)
      }
    }
  },
}

/** Why a provider's answer does not fit: only a request that it has and that is pending waits for one. */
function notAwaited(state: FinancingSession, now: number): Rejection | null {
  if (state.cancelled_at !== null) return sessionClosed()
  const status = financingStatusAt(state, now)
  if (status === 'pending' && state.request?.provider_request_id) return null
  const why =
    status === 'pending'
      ? 'The provider does not have the request yet'
      : `The financing of the session is ${status}, no longer pending`
  return reject('conflict', 'financing_not_pending', status === 'not_started' ? noQuotesYet : why)
}
const noQuotesYet = 'Nobody asked for quotes yet'

function noQuotes(): Rejection {
  return reject('conflict', 'financing_without_quotes', 'There are no quotes')
}

/** What is held or paid does not expire; what is, stays so. */
function expire(
  { by, at }: Extract<FinancingSessionCommand, { type: 'Expire' }>,
  state: FinancingSession,
): readonly FinancingSessionEvent[] | Rejection {
  const { financing_session_id, request, expired_at, cancelled_at } = state
  if (expired_at !== null || (by === 'time' && cancelled_at !== null)) return []
  if (by === 'provider') {
    if (cancelled_at !== null) return sessionClosed()
    const status = financingStatusAt(state, at)
    if (!request || status === 'on_hold' || status === 'payment_reported') {
      const why = request ? `The financing of the session is ${status}` : noQuotesYet
      return reject('conflict', 'financing_not_pending', why)
    }
  }
  return [FinancingExpired.of({ financing_session_id, by, expired_at: isoTime(at) })]
}

function requesting(
  before: FinancingSession,
  updated_at: string,
  changes: Partial<FinancingRequest>,
): FinancingSession {
  return { ...before, request: { ...before.request!, ...changes }, updated_at }
}

/** A down payment moves the status only where quotes are open; a notice that comes later is kept all the same. */
function paid(
  before: FinancingSession,
  { notice_id, amount_cents, quote_key, reported_at }: DataOf<'FinancingDownPaymentReported'>,
): FinancingSession {
  const notices = [...before.notices, { notice_id, amount_cents, quote_key }]
  const after = { ...before, notices, updated_at: reported_at }
  const isOpen = before.request!.status === 'quote_ready' && isActive(before, Date.parse(reported_at))
  return quote_key !== null && isOpen ? requesting(after, reported_at, { status: 'payment_reported' }) : after
}
