import { z } from 'zod'
import type { ShownAchAccount } from '../../../../application/banking/accounts/ach-accounts.ts'
import type { ShownBankAccount } from '../../../../application/banking/accounts/bank-accounts.ts'
import { ACH_ACCOUNT_STATUSES } from '../../../../domain/banking/accounts/ach-account.ts'
import { BANK_ACCOUNT_STATUSES, CONNECTION_TYPES } from '../../../../domain/banking/accounts/bank-account.ts'
import {
  id,
  isoMoment,
  optional,
  reference,
  text,
  withDefault,
  word,
  wrongType,
} from '../../../endpoints/fields.ts'
import { noneGiven, repeating } from '../../../endpoints/repeating.ts'

const NAME = 200
const accountType = () => word('checking', 'savings')

/** A bank account of the metadata layer. */
export const BankAccount = z
  .object({
    _id: id(),
    user_id: z.string(),
    name: z.string(),
    bank_name: z.string(),
    employer_id: id().nullable(),
    carrier_id: id().nullable(),
    connection_type: z.enum(CONNECTION_TYPES),
    status: z.enum(BANK_ACCOUNT_STATUSES),
    primary: z.boolean().describe('Of its employer, else its carrier, else its user'),
    created_at: isoMoment(),
    updated_at: isoMoment(),
  })
  .meta({ id: 'BankAccount' })

export function showBankAccount({ account, isPrimary: primary }: ShownBankAccount) {
  return { ...account, _id: account.bank_account_id, primary }
}

export const newBankAccount = z.object({
  user_id: text(NAME).describe('Your own word for who manages it'),
  name: text(NAME),
  bank_name: text(NAME),
  employer_id: optional(reference()),
  carrier_id: optional(reference()),
  connection_type: withDefault(word(...CONNECTION_TYPES), 'manual'),
  primary: withDefault(z.boolean(), false),
})

export const bankAccountChange = z.object({
  name: text(NAME).optional(),
  bank_name: text(NAME).optional(),
  employer_id: reference().nullable().optional(),
  carrier_id: reference().nullable().optional(),
  connection_type: word(...CONNECTION_TYPES).optional(),
  status: word(...BANK_ACCOUNT_STATUSES).optional(),
  primary: z.boolean().optional(),
})

/** An ACH account, without its numbers. */
export const AchAccount = z
  .object({
    _id: id(),
    account_last4: z.string(),
    routing_last4: z.string(),
    status: z.enum(ACH_ACCOUNT_STATUSES),
    bank_name: z.string(),
    account_type: z.enum(['checking', 'savings']),
    owner_type: z.enum(['employer', 'carrier']),
    owner_id: id(),
    nickname: z.string().nullable(),
    is_primary: z.boolean(),
    connection_type: z.enum(CONNECTION_TYPES),
    verified: z.boolean(),
    unverified_reason: z
      .string()
      .optional()
      .describe(
        'Of a linked account that is `unverified`: the bank link’s word for why it does not vouch for it',
      ),
    unlisted: z
      .literal(true)
      .optional()
      .describe('The bank does not list the linked account any more: it cannot be debited'),
    created_at: isoMoment(),
    updated_at: isoMoment(),
  })
  .meta({ id: 'AchAccount' })

export function showAchAccount({ account: shown, isPrimary: is_primary }: ShownAchAccount) {
  const { account: numbers, unverified_reason, unlisted, ...account } = shown
  return {
    ...numbers,
    ...account,
    _id: account.ach_account_id,
    is_primary,
    ...(account.status === 'unverified' && { unverified_reason }),
    ...(unlisted && { unlisted: true as const }),
  }
}

/** Digits, which no refusal repeats. */
const digits = (pattern: RegExp, what: string) => z.string(wrongType(what)).regex(pattern, what)

export const newAchAccount = z.object({
  owner_type: word('employer', 'carrier'),
  owner_id: reference(),
  routing_number: digits(/^\d{9}$/, 'must be a string of 9 digits'),
  account_number: digits(/^\d{5,17}$/, 'must be a string of 5 to 17 digits'),
  bank_name: text(NAME),
  account_type: accountType(),
  nickname: optional(text(NAME)),
  is_primary: withDefault(z.boolean(), false),
})

export const achAccountChange = z.object({
  nickname: text(NAME).nullable().optional(),
  bank_name: text(NAME).optional(),
  account_type: accountType().optional(),
  is_primary: z.boolean().optional(),
})

/** A change of some fields: at least one. What else is shown of the resource may be repeated. */
export function changing<Change extends z.ZodObject>(shown: z.ZodObject, change: Change) {
  const names = Object.keys(change.shape)
  return repeating(shown, change).refine(
    (sent) => names.some((name) => Object.hasOwn(sent, name)),
    noneGiven(change),
  )
}

/** An ACH account whose verification was started. */
export const AchAccountVerification = z
  .object({
    _id: id(),
    status: z.enum(ACH_ACCOUNT_STATUSES),
    tries_left: z.int(),
    expires_at: isoMoment().describe('Until when the amounts can be told'),
  })
  .meta({ id: 'AchAccountVerification' })
