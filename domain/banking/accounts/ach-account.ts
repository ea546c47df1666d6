import { isoTime } from '../../kernel/calendar.ts'
import type { Decider } from '../../kernel/decider.ts'
import { type Rejection, reject } from '../../kernel/rejection.ts'
import { isSameAccount } from '../debits/debited-account.ts'
import { outweighs, saysNoAccount } from '../debits/return-codes.ts'
import {
  AchAccountChanged,
  AchAccountCorrected,
  AchAccountCreated,
  type AchAccountData,
  AchAccountDeleted,
  AchAccountDisabled,
  AchAccountEnabled,
  type AchAccountEvent,
  AchAccountIdentified,
  AchAccountListed,
  AchAccountMicroDepositsRefused,
  AchAccountMicroDepositsSent,
  AchAccountNumbersRead,
  AchAccountNumbersRemoved,
  AchAccountUnlisted,
  AchAccountUnverified,
  AchAccountVerificationFailed,
  AchAccountVerificationStarted,
  AchAccountVerified,
  achAccountEvents,
} from './ach-account-events.ts'
import { differing } from './bank-account.ts'

/**
 * An ACH account: what money is moved with. One entered by hand is `unverified` until micro-deposits or an operator say
 * that it is its owner's; a linked one is `active` while the bank link vouches for it. A return can disable it, until an
 * operator enables it again.
 */
export const ACH_ACCOUNT_STATUSES = ['unverified', 'active', 'disabled'] as const
export type AchAccountStatus = (typeof ACH_ACCOUNT_STATUSES)[number]

/** How often the amounts of the two deposits may be told. */
export const VERIFICATION_TRIES = 3
/** How long, in milliseconds. */
export const VERIFICATION_MS = 14 * 86_400_000

export interface Verification {
  readonly verification_id: string
  readonly expires_at: string
  readonly tries_left: number
  /** `ended`: its tries are used up, or its deposits did not arrive. */
  readonly state: 'started' | 'sent' | 'ended' | 'verified'
}

export interface AchAccount extends AchAccountData<'AchAccountCreated'> {
  readonly status: AchAccountStatus
  /** The source of the proof that it belongs to its owner; null: none. */
  readonly verified_by: AchAccountData<'AchAccountVerified'>['by'] | null
  /** The last one; null: there was none. */
  readonly verification: Verification | null
  /** The bank link lists it no more. */
  readonly unlisted: boolean
  /** The return that disabled it; null: none did, or it was enabled since. */
  readonly return_code: string | null
  /** The account is disabled, and was verified since. */
  readonly verified_anew: boolean
  /** Where the vault keeps its numbers, those before a correction included. */
  readonly account_refs: readonly string[]
  readonly updated_at: string
  /** Null: it is there. */
  readonly deleted_at: string | null
}

/** What of it can be changed. */
export type AchAccountChange = Pick<
  AchAccountData<'AchAccountChanged'>,
  'nickname' | 'bank_name' | 'account_type'
>

/** Times are epoch milliseconds, amounts cents. */
export type AchAccountCommand =
  | { readonly type: 'Create'; readonly data: AchAccountData<'AchAccountCreated'> }
  | { readonly type: 'Change'; readonly change: AchAccountChange; readonly at: number }
  | { readonly type: 'StartVerification'; readonly verificationId: string; readonly at: number }
  | {
      readonly type: 'RecordDeposits'
      readonly verificationId: string
      readonly isTaken: boolean
      readonly at: number
    }
  | {
      readonly type: 'Verify'
      readonly verificationId: string
      /** As told, and as they are; the order does not count. */
      readonly amounts: readonly number[]
      readonly expected: readonly number[]
      readonly at: number
    }
  | {
      /** Of a linked account. */
      readonly type: 'HearOfLink'
      /** Null: the bank link vouches for it. */
      readonly unverifiedReason: string | null
      /** See {@link AchAccountData}; absent: the bank link has none. */
      readonly persistentFingerprint?: string
      readonly at: number
    }
  | { readonly type: 'Unlist'; readonly at: number }
  | { readonly type: 'Attest'; readonly note: string | null; readonly at: number }
  | { readonly type: 'Disable'; readonly return_code: string; readonly at: number }
  | {
      readonly type: 'Enable'
      readonly reason: string
      /** Another account that has the same numbers was verified anew. */
      readonly isVerifiedByOther: boolean
      readonly at: number
    }
  | {
      readonly type: 'RecordRead'
      readonly purpose: AchAccountData<'AchAccountNumbersRead'>['purpose']
      readonly at: number
    }
  | {
      readonly type: 'Correct'
      readonly changeCode: string
      /** What is corrected; any other is left as it is. */
      readonly of: AchAccount['account']
      readonly account: AchAccount['account']
      readonly routingLast4: string
      readonly at: number
    }
  | { readonly type: 'Delete'; readonly at: number }
  | { readonly type: 'RecordRemoved'; readonly at: number }

export const achAccount: Decider<AchAccount | null, AchAccountCommand, AchAccountEvent> = {
  category: 'achAccount',
  events: achAccountEvents,
  initialState: null,
  evolve(state, event) {
    if (event.type === 'AchAccountCreated') {
      const { verified, account, created_at } = event.data
      return {
        ...event.data,
        status: verified ? 'active' : 'unverified',
        verified_by: verified ? 'bank_link' : null,
        verification: null,
        unlisted: false,
        return_code: null,
        verified_anew: false,
        account_refs: [account.account_ref],
        updated_at: created_at,
        deleted_at: null,
      }
    }
    const known = state!
    const { at } = event.data
    const before = { ...known, updated_at: at }
    const verification = (change: Partial<Verification>) => ({ ...known.verification!, ...change })
    switch (event.type) {
      case 'AchAccountChanged': {
        const { nickname = known.nickname, bank_name = known.bank_name } = event.data
        const { account_type = known.account.account_type } = event.data
        return { ...before, nickname, bank_name, account: { ...known.account, account_type } }
      }
      case 'AchAccountVerificationStarted': {
        const { verification_id, expires_at } = event.data
        const begun = { tries_left: VERIFICATION_TRIES, state: 'started' } as const
        return { ...before, verification: { verification_id, expires_at, ...begun } }
      }
      case 'AchAccountMicroDepositsSent':
        return { ...known, verification: verification({ state: 'sent' }) }
      case 'AchAccountMicroDepositsRefused':
        return { ...before, verification: verification({ state: 'ended' }) }
      case 'AchAccountVerificationFailed': {
        const { tries_left } = event.data
        const ended = tries_left === 0 ? ({ state: 'ended' } as const) : {}
        return { ...before, verification: verification({ tries_left, ...ended }) }
      }
      case 'AchAccountUnverified': {
        const { reason: unverified_reason } = event.data
        const status = known.status === 'disabled' ? 'disabled' : 'unverified'
        return { ...before, status, verified: false, verified_by: null, unverified_reason }
      }
      case 'AchAccountVerified':
        return {
          ...before,
          // that it is there says not yet that it may be debited again
          status: known.status === 'disabled' ? 'disabled' : 'active',
          verified_anew: known.status === 'disabled',
          verified: true,
          verified_by: event.data.by,
          ...(event.data.verification_id === null
            ? {}
            : { verification: verification({ state: 'verified' }) }),
        }
      case 'AchAccountIdentified':
        return { ...known, persistent_fingerprint: event.data.persistent_fingerprint }
      case 'AchAccountUnlisted':
        return { ...before, unlisted: true }
      case 'AchAccountListed':
        return { ...before, unlisted: false }
      case 'AchAccountDisabled':
        return {
          ...before,
          status: 'disabled',
          return_code: event.data.return_code,
          verified_anew: false,
        }
      case 'AchAccountEnabled':
        return { ...before, status: event.data.status, return_code: null, verified_anew: false }
      case 'AchAccountNumbersRead':
        return known
      case 'AchAccountCorrected': {
        const { account, routing_last4 } = event.data
        const account_refs = [...new Set([...known.account_refs, account.account_ref])]
        return { ...before, account, routing_last4, account_refs }
      }
      case 'AchAccountDeleted':
        return { ...before, deleted_at: at }
      case 'AchAccountNumbersRemoved':
        return { ...known, account_refs: [] }
    }
  },
  decide(command, state): readonly AchAccountEvent[] | Rejection {
    if (command.type === 'Create') {
      if (state) return reject('conflict', 'ach_account_exists', 'The ACH account exists already')
      return refuseNumbersIn(command.data, command.data) ?? [AchAccountCreated.of(command.data)]
    }
    if (!state) return noAchAccount()
    const { ach_account_id } = state
    const at = isoTime(command.at)
    switch (command.type) {
      case 'RecordDeposits':
        return recordDeposits(command, state)
      // its numbers are there still, for debits that were arranged before it was deleted
      case 'RecordRead':
        return [AchAccountNumbersRead.of({ ach_account_id, purpose: command.purpose, at })]
      case 'Disable':
        if (isDisabledBy(command, state)) return []
        return [AchAccountDisabled.of({ ach_account_id, return_code: command.return_code, at })]
      case 'Delete':
        // of many at once, each has deleted it
        return state.deleted_at === null ? [AchAccountDeleted.of({ ach_account_id, at })] : []
      case 'RecordRemoved':
        if (state.deleted_at === null || state.account_refs.length === 0) return []
        return [AchAccountNumbersRemoved.of({ ach_account_id, at })]
    }
    if (state.deleted_at !== null) return noAchAccount()
    switch (command.type) {
      case 'Change': {
        const refusal = refuseNumbersIn(command.change, state)
        if (refusal) return refusal
        const { account, nickname, bank_name } = state
        const change = differing({ nickname, bank_name, account_type: account.account_type }, command.change)
        return change === null ? [] : [AchAccountChanged.of({ ach_account_id, ...change, at })]
      }
      case 'StartVerification':
        return startVerification(command, state)
      case 'Verify':
        return verify(command, state)
      case 'HearOfLink':
        return recordLinkState(command, state)
      case 'Unlist':
        if (state.connection_type !== 'bankconnect' || state.unlisted) return []
        return [AchAccountUnlisted.of({ ach_account_id, at })]
      case 'Attest': {
        // what the bank link says alone may be over tomorrow
        if (isVerifiedNow(state) && state.verified_by !== 'bank_link') return []
        const refusal = refuseDisabled(state)
        if (refusal) return refusal
        const by = { by: 'operator', verification_id: null, note: command.note } as const
        return [AchAccountVerified.of({ ach_account_id, ...by, at })]
      }
      case 'Enable':
        return enable(command, state)
      case 'Correct': {
        const { changeCode: change_code, of, account, routingLast4: routing_last4 } = command
        if (isSameAccount(state.account, account) || !isSameAccount(state.account, of)) return []
        return [AchAccountCorrected.of({ ach_account_id, change_code, account, routing_last4, at })]
      }
    }
  },
}

export function noAchAccount(): Rejection {
  return reject('not_found', 'ach_account_not_found', 'There is no such ACH account')
}

/**
 * Refuses names that hold a number of the account, which are kept and shown as they are: the last digits that are known,
 * after a digit of an account number (5 to 17) or the five of a routing number (9).
 */
export function refuseNumbersIn(
  { bank_name, nickname }: Pick<AchAccountChange, 'bank_name' | 'nickname'>,
  known: Pick<AchAccountData<'AchAccountCreated'>, 'routing_last4'> & {
    readonly account: Pick<AchAccount['account'], 'account_last4'>
  },
): Rejection | null {
  const number = new RegExp(`\\d${known.account.account_last4}|\\d{5}${known.routing_last4}`)
  for (const [field, name] of Object.entries({ bank_name, nickname })) {
    if (typeof name !== 'string' || !number.test(name)) continue
    return reject('invalid', 'number_in_name', `${field} must not hold a number of the account`, field)
  }
  return null
}

/** Whether the amounts can be told still. @param at epoch milliseconds. */
export function isUnderWay(verification: Verification | null, at: number): verification is Verification {
  if (verification === null || at >= Date.parse(verification.expires_at)) return false
  return verification.state === 'started' || verification.state === 'sent'
}

/** Whether the deposits of a verification are still to be paid. @param at epoch milliseconds. */
export function awaitsDeposits(account: AchAccount, verificationId: string, at: number): boolean {
  const { deleted_at, verification } = account
  const isOpen = deleted_at === null && !isVerifiedNow(account) && refuseDisabled(account) === null
  return isOpen && verification?.verification_id === verificationId && isUnderWay(verification, at)
}

/** Why entered amounts are wrong, by the tries that are left. */
export function wrongAmounts({ tries_left }: Pick<Verification, 'tries_left'>): Rejection {
  const left =
    tries_left === 0
      ? 'no tries left, and the verification has ended: start another one'
      : tries_left === 1
        ? '1 try left'
        : `${tries_left} tries left`
  const why = `amounts_cents are not those of the two deposits; ${left}`
  return reject('invalid', 'wrong_amounts', why, 'amounts_cents')
}

type CommandOf<Type extends AchAccountCommand['type']> = Extract<AchAccountCommand, { type: Type }>

function startVerification(
  { verificationId: verification_id, at }: CommandOf<'StartVerification'>,
  state: AchAccount,
): readonly AchAccountEvent[] | Rejection {
  const refusal = refuseDisabled(state) ?? refuseVerified(state)
  if (refusal) return refusal
  const { ach_account_id, verification } = state
  if (isUnderWay(verification, at)) {
    const why = `Deposits are on their way already: tell their amounts, until ${verification.expires_at}`
    return reject('conflict', 'verification_under_way', why)
  }
  const expires_at = isoTime(at + VERIFICATION_MS)
  return [AchAccountVerificationStarted.of({ ach_account_id, verification_id, expires_at, at: isoTime(at) })]
}

function recordDeposits(
  { verificationId: verification_id, isTaken, at }: CommandOf<'RecordDeposits'>,
  { ach_account_id, verification }: AchAccount,
): readonly AchAccountEvent[] {
  if (verification?.verification_id !== verification_id) return []
  const { state } = verification
  // what the bank has taken it can reject still, or send back
  if (state !== 'started' && (isTaken || state !== 'sent')) return []
  const data = { ach_account_id, verification_id, at: isoTime(at) }
  return [isTaken ? AchAccountMicroDepositsSent.of(data) : AchAccountMicroDepositsRefused.of(data)]
}

function verify(
  { verificationId: verification_id, amounts, expected, at }: CommandOf<'Verify'>,
  state: AchAccount,
): readonly AchAccountEvent[] | Rejection {
  const { ach_account_id, verification } = state
  const isCurrent = verification?.verification_id === verification_id
  const isRight = isCurrent && areSame(amounts, expected)
  const refusal = refuseDisabled(state)
  if (refusal) return refusal
  // told again, since the answer was lost
  if (isRight && verification.state === 'verified') return []
  const verified = refuseVerified(state)
  if (verified) return verified
  if (!isCurrent || !isUnderWay(verification, at)) {
    const why = 'No verification is under way: start one with micro-deposits'
    return reject('conflict', 'no_verification', why)
  }
  if (isRight) {
    const by = { by: 'micro_deposits', verification_id, note: null } as const
    return [AchAccountVerified.of({ ach_account_id, ...by, at: isoTime(at) })]
  }
  const tries_left = verification.tries_left - 1
  return [AchAccountVerificationFailed.of({ ach_account_id, verification_id, tries_left, at: isoTime(at) })]
}

/** What its owner or an operator showed stands, whatever the bank link says. */
function recordLinkState(
  { unverifiedReason: reason, persistentFingerprint, at: now }: CommandOf<'HearOfLink'>,
  { ach_account_id, connection_type, status, verified_by, unverified_reason, ...state }: AchAccount,
): readonly AchAccountEvent[] {
  const at = isoTime(now)
  if (connection_type !== 'bankconnect') return []
  const isIdentified =
    persistentFingerprint === undefined || persistentFingerprint === state.persistent_fingerprint
  const reported = [
    ...(state.unlisted ? [AchAccountListed.of({ ach_account_id, at })] : []),
    ...(isIdentified
      ? []
      : [AchAccountIdentified.of({ ach_account_id, persistent_fingerprint: persistentFingerprint, at })]),
  ]
  if (status === 'disabled') {
    // that the link vouches for it is no new proof after a return; that it does not counts once it is enabled
    const isOver = reason !== null && verified_by === 'bank_link'
    return isOver ? [...reported, AchAccountUnverified.of({ ach_account_id, reason, at })] : reported
  }
  if (reason === null) {
    const by = { by: 'bank_link', verification_id: null, note: null } as const
    return status === 'active'
      ? reported
      : [...reported, AchAccountVerified.of({ ach_account_id, ...by, at })]
  }
  const isKnown = status === 'active' ? verified_by !== 'bank_link' : unverified_reason === reason
  return isKnown ? reported : [...reported, AchAccountUnverified.of({ ach_account_id, reason, at })]
}

/** For the history of a debit that is not taken from an account that is disabled. */
export function disabledNote({ return_code }: Pick<AchAccount, 'return_code'>): string {
  return `Its account is disabled${return_code === null ? '' : ` (${return_code})`}`
}

/**
 * Its numbers may be debited again. Where the return said that there is no such account, it must have been verified since.
 */
function enable(
  { reason, isVerifiedByOther, at }: CommandOf<'Enable'>,
  { ach_account_id, status: before, return_code, verified, verified_anew }: AchAccount,
): readonly AchAccountEvent[] | Rejection {
  if (before !== 'disabled') return []
  if (saysNoAccount(return_code!) && !verified_anew && !isVerifiedByOther) {
    const why =
      `A bank returned a debit with ${return_code}: it says that there is no such account. Have it verified anew, by ` +
      'micro-deposits or by an attestation, then enable it'
    return reject('conflict', 'ach_account_unverified', why)
  }
  const status = verified ? 'active' : 'unverified'
  return [AchAccountEnabled.of({ ach_account_id, reason, status, at: isoTime(at) })]
}

/** Whether a return tells nothing new: it neither says more than the one before, nor again what was shown to be over. */
function isDisabledBy({ return_code }: CommandOf<'Disable'>, state: AchAccount): boolean {
  const { status, return_code: before, verified_anew } = state
  if (status !== 'disabled') return false
  return !outweighs(return_code, before!) && !(verified_anew && saysNoAccount(return_code))
}

/** What a return says is not there can be verified anew; of what else it disabled nothing is to be verified. */
function refuseDisabled({ status, return_code }: AchAccount): Rejection | null {
  if (status !== 'disabled' || saysNoAccount(return_code!)) return null
  const why = `The ACH account is disabled: a bank returned a debit with ${return_code}`
  return reject('conflict', 'ach_account_disabled', why)
}

function refuseVerified(state: AchAccount): Rejection | null {
  if (!isVerifiedNow(state)) return null
  return reject('conflict', 'ach_account_verified', 'The ACH account is verified already')
}

/** Whether it is verified, and no return has said since that there is no such account. */
function isVerifiedNow({ status, verified_anew }: AchAccount): boolean {
  return status === 'active' || verified_anew
}

function areSame(left: readonly number[], right: readonly number[]): boolean {
  const ascending = (amounts: readonly number[]) => amounts.toSorted((one, other) => one - other)
  return ascending(left).join() === ascending(right).join()
}
