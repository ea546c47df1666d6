import { z } from 'zod'
import type {
  LinkedAccount,
  LinkedBalance,
  LinkedItem,
  LinkedTransaction,
  TransactionPage,
} from '../../../application/ports/bank-link.ts'
import { ProviderUnavailable } from '../../../application/ports/provider.ts'
import { isCalendarDate } from '../../../domain/kernel/calendar.ts'
import { decimal, divideHalfUp } from '../../../domain/kernel/money.ts'

/**
 * The answers of Plaid, as far as they are used, in our words. What is none of them does not parse: it is stored nowhere,
 * and the request may be repeated.
 */

/** Ids, tokens and codes; they are stored and sent back as they came. */
const word = () => z.string().regex(/^[!-~]{1,500}$/)

/** Plaid's amounts are decimals in JSON numbers; here they are cents. */
const cents = () =>
  z.number().transform((amount, { addIssue }) => {
    const exact = decimal(amount)
    const cents = exact && Number(divideHalfUp(exact.digits * 100n, 10n ** BigInt(exact.scale)))
    if (cents !== null && Number.isSafeInteger(cents)) return cents
    addIssue('no amount')
    return z.NEVER
  })

/** Absent where it is not known. */
const orNull = <Type extends z.ZodType>(type: Type) => type.nullish().transform((value) => value ?? null)

const currency = { iso_currency_code: orNull(word()), unofficial_currency_code: orNull(word()) }
const currencyOf = ({
  iso_currency_code,
  unofficial_currency_code,
}: z.output<z.ZodObject<typeof currency>>) =>
  (iso_currency_code ?? unofficial_currency_code)?.toLowerCase() ?? null

/** Subtypes of deposit accounts that can be debited, and as what. */
const DEBITABLE: ReadonlyMap<string | null, 'checking' | 'savings'> = new Map([
  ['checking', 'checking'],
  ['cash management', 'checking'],
  ['savings', 'savings'],
  ['money market', 'savings'],
])

/** Words of `verification_status` by which Plaid vouches for an account; so does none, of one that was linked at its bank. */
const VERIFIED: ReadonlySet<string | null> = new Set([
  ...[null, 'automatically_verified', 'manually_verified'],
  ...['database_matched', 'database_insights_pass'],
])

const account = z
  .object({
    account_id: word(),
    name: z.string(),
    mask: orNull(z.string()),
    type: z.string(),
    subtype: orNull(z.string()),
    verification_status: orNull(word()),
    persistent_account_id: orNull(word()),
  })
  .transform(({ account_id: accountId, name, mask, type, subtype, ...said }): LinkedAccount => {
    const debitable = type === 'depository' ? DEBITABLE.get(subtype) : undefined
    const { verification_status, persistent_account_id: persistentId } = said
    const unverifiedReason = VERIFIED.has(verification_status) ? null : verification_status
    return {
      accountId,
      name,
      mask,
      type: debitable ?? 'other',
      unverifiedReason,
      ...(persistentId !== null && { persistentId }),
    }
  })

const balance = z
  .object({
    account_id: word(),
    balances: z.object({ current: orNull(cents()), available: orNull(cents()), ...currency }),
  })
  .transform(({ account_id: accountId, balances }): LinkedBalance => {
    const { current: currentCents, available: availableCents } = balances
    return { accountId, currentCents, availableCents, currency: currencyOf(balances) }
  })

const transaction = z
  .object({
    transaction_id: word(),
    account_id: word(),
    amount: cents(),
    ...currency,
    date: z.string().refine(isCalendarDate),
    pending: z.boolean(),
    merchant_name: z.string().nullish(),
    name: z.string(),
  })
  .transform((one): LinkedTransaction => {
    const { transaction_id: providerId, account_id: accountId, date, pending, amount: outCents } = one
    const description = one.merchant_name ?? one.name
    return { providerId, accountId, date, pending, outCents, currency: currencyOf(one), description }
  })

/** By what is asked. */
export const ANSWERS = {
  linkToken: z.object({ link_token: word() }).transform(({ link_token }) => ({ linkToken: link_token })),
  item: z
    .object({ item_id: word(), access_token: word() })
    .transform(({ item_id, access_token }): LinkedItem => ({ itemId: item_id, token: access_token })),
  accounts: z
    .object({ item: z.object({ institution_name: z.string().nullish() }), accounts: z.array(account) })
    .transform(({ item, accounts }) => ({ institutionName: item.institution_name ?? null, accounts })),
  balances: z.object({ accounts: z.array(balance) }).transform(({ accounts }) => accounts),
  numbers: z.object({
    accounts: z.array(account),
    numbers: z.object({
      ach: z.array(z.object({ account_id: word(), routing: z.string(), account: z.string() })),
    }),
  }),
  /** Those of the account that was asked for: odd ones of another are no matter. */
  numbersOfOne: z
    .object({ routing: z.string().regex(/^\d{9}$/), account: z.string().regex(/^\d{4,17}$/) })
    .transform(({ routing: routingNumber, account: accountNumber }) => ({ routingNumber, accountNumber })),
  transactions: z
    .object({
      added: z.array(transaction),
      modified: z.array(transaction),
      removed: z.array(z.object({ transaction_id: word() })),
      // none yet, while Plaid still gathers them
      next_cursor: z.union([word(), z.literal('')]),
      has_more: z.boolean(),
    })
    .transform(
      ({ added, modified, removed, next_cursor, has_more }): TransactionPage => ({
        changed: [...added, ...modified],
        removed: removed.map(({ transaction_id }) => transaction_id),
        cursor: next_cursor,
        hasMore: has_more,
      }),
    ),
}

/**
 * Reads an answer.
 * @throws ProviderUnavailable where it is none of the kind; it names the field, and nothing of what is in it.
 */
export function readAs<Answer>(kind: z.ZodType<Answer>, answer: unknown): Answer {
  const { success, data, error } = kind.safeParse(answer)
  if (success) return data
  const field = error.issues[0]!.path.join('.') || 'no object'
  throw new ProviderUnavailable(`The bank link answered with what cannot be read (${field})`)
}
