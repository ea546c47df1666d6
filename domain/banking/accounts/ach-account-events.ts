import { z } from 'zod'
import { type DataOf, type EventOf, eventType, time } from '../../kernel/event-type.ts'
import { environment, id } from '../../kernel/ids.ts'
import { debitedAccount } from '../debits/debited-account.ts'
import { CONNECTION_TYPES } from './bank-account.ts'

/** What happens to an ACH account. Its numbers are in the vault, never here. Times are ISO 8601. */
const last4 = () => z.string().regex(/^\d{4}$/)
const account = { ach_account_id: id() }
const { fingerprint } = debitedAccount.shape
const verification = { ...account, verification_id: id() }

export const AchAccountCreated = eventType('AchAccountCreated', {
  ...account,
  tenant_id: id(),
  environment: environment(),
  owner_type: z.enum(['employer', 'carrier']),
  owner_id: id(),
  account: debitedAccount,
  routing_last4: last4(),
  bank_name: z.string(),
  nickname: z.string().nullable(),
  /** The account was asked to be its owner's primary one. */
  is_primary: z.boolean(),
  connection_type: z.enum(CONNECTION_TYPES),
  /** The one of the metadata layer that is the same account; null: none is tied to it. */
  bank_account_id: id().nullable(),
  /** The bank itself vouched for it. */
  verified: z.boolean(),
  /** The bank link's word for why it did not; absent where it did, and of accounts that were entered by hand. */
  unverified_reason: z.string().optional(),
  /** Keyed, of the bank link's word for the account itself, whichever connection and numbers it has; absent: it has none. */
  persistent_fingerprint: fingerprint.optional(),
  created_at: time(),
})
export const AchAccountChanged = eventType('AchAccountChanged', {
  ...account,
  nickname: z.string().nullable().optional(),
  bank_name: z.string().optional(),
  account_type: debitedAccount.shape.account_type.optional(),
  at: time(),
})
/** Two small credits are on their way; the amounts follow from the id, under a key of the service. */
export const AchAccountVerificationStarted = eventType('AchAccountVerificationStarted', {
  ...verification,
  expires_at: time(),
  at: time(),
})
/** The bank has taken them, or they wait for its next file. */
export const AchAccountMicroDepositsSent = eventType('AchAccountMicroDepositsSent', {
  ...verification,
  at: time(),
})
/** The bank would not take them, or sent them back: the verification has ended. */
export const AchAccountMicroDepositsRefused = eventType('AchAccountMicroDepositsRefused', {
  ...verification,
  at: time(),
})
/** Other amounts were told; with no tries left the verification has ended. */
export const AchAccountVerificationFailed = eventType('AchAccountVerificationFailed', {
  ...verification,
  tries_left: z.int().min(0),
  at: time(),
})
export const AchAccountVerified = eventType('AchAccountVerified', {
  ...account,
  by: z.enum(['micro_deposits', 'operator', 'bank_link']),
  /** Null unless by micro-deposits. */
  verification_id: id().nullable(),
  note: z.string().nullable(),
  at: time(),
})
/** The bank link no longer vouches for a linked account, or gives another reason why it does not. */
export const AchAccountUnverified = eventType('AchAccountUnverified', {
  ...account,
  reason: z.string(),
  at: time(),
})
/** The bank link tells which account it is, which it did not before. */
export const AchAccountIdentified = eventType('AchAccountIdentified', {
  ...account,
  persistent_fingerprint: fingerprint,
  at: time(),
})
/** The bank link lists it no more: nothing is debited from it. */
export const AchAccountUnlisted = eventType('AchAccountUnlisted', { ...account, at: time() })
export const AchAccountListed = eventType('AchAccountListed', { ...account, at: time() })
/** A bank returned a debit for a reason that holds for all others, too. */
export const AchAccountDisabled = eventType('AchAccountDisabled', {
  ...account,
  return_code: z.string(),
  at: time(),
})
/** An operator says that its numbers may be debited again. */
export const AchAccountEnabled = eventType('AchAccountEnabled', {
  ...account,
  reason: z.string(),
  /** Whether it is verified. */
  status: z.enum(['active', 'unverified']),
  at: time(),
})
/** The full numbers are taken out of the vault; recorded before. What a batch of debits takes out, its file shows. */
export const AchAccountNumbersRead = eventType('AchAccountNumbersRead', {
  ...account,
  purpose: z.enum(['micro_deposits', 'correction']),
  at: time(),
})
/** A bank notified of a change: debits from now on carry what it says. */
export const AchAccountCorrected = eventType('AchAccountCorrected', {
  ...account,
  change_code: z.string(),
  account: debitedAccount,
  routing_last4: last4(),
  at: time(),
})
export const AchAccountDeleted = eventType('AchAccountDeleted', { ...account, at: time() })
/** The vault has forgotten the numbers of a deleted account. */
export const AchAccountNumbersRemoved = eventType('AchAccountNumbersRemoved', { ...account, at: time() })

export const achAccountEvents = [
  AchAccountCreated,
  AchAccountChanged,
  AchAccountVerificationStarted,
  AchAccountMicroDepositsSent,
  AchAccountMicroDepositsRefused,
  AchAccountVerificationFailed,
  AchAccountVerified,
  AchAccountUnverified,
  AchAccountIdentified,
  AchAccountUnlisted,
  AchAccountListed,
  AchAccountDisabled,
  AchAccountEnabled,
  AchAccountNumbersRead,
  AchAccountCorrected,
  AchAccountDeleted,
  AchAccountNumbersRemoved,
] as const
export type AchAccountEvent = EventOf<(typeof achAccountEvents)[number]>
export type AchAccountData<Type extends AchAccountEvent['type']> = DataOf<AchAccountEvent, Type>
