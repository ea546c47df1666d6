import {
  type AccountBase,
  Configuration,
  CountryCode,
  type LinkTokenCreateRequest,
  PlaidApi,
  Products,
  type Transaction,
} from 'plaid'
import {
  type AskedLinkToken,
  type BankLink,
  BankLinkRefused,
  type LinkedAccount,
  type LinkedBalance,
  type LinkedNumbers,
  type LinkedTransaction,
  type TransactionPage,
} from '../../../application/ports/bank-link.ts'
import { decimal, divideHalfUp } from '../../../domain/kernel/money.ts'
import { plaidCode, plaidRefusal } from './plaid-errors.ts'

const TIMEOUT_MS = 10_000
/** The bank itself is asked, which Plaid says may take half a minute. */
const BALANCE_TIMEOUT_MS = 35_000
/** Bytes of an answer at the most: a page of transactions has a few hundred kilobytes. */
const LARGEST_ANSWER = 16 * 1024 * 1024
/** Transactions that are asked for at once. */
const PAGE = 100
/** Characters of the name in the widget, past which it shows another. */
const LONGEST_NAME = 30
const CHANGED_MEANWHILE = 'TRANSACTIONS_SYNC_MUTATION_DURING_PAGINATION'

/** Subtypes of deposit accounts that can be debited, and as what. */
const DEBITABLE: Readonly<Record<string, 'checking' | 'savings'>> = {
  checking: 'checking',
  'cash management': 'checking',
  savings: 'savings',
  'money market': 'savings',
}

export interface PlaidSettings {
  readonly clientId: string
  readonly secret: string
  /** `https://production.plaid.com`, or what stands in for it. */
  readonly baseUrl: string
  /** Real milliseconds that Plaid may take for an answer, default 10000, and 35000 for balances. */
  readonly timeoutMs?: number
}

/** Plaid, by its own SDK. */
export class PlaidBankLink implements BankLink {
  readonly kind = 'plaid'
  readonly #plaid: PlaidApi
  readonly #balanceTimeoutMs: number

  constructor({ clientId, secret, baseUrl, timeoutMs }: PlaidSettings) {
    this.#balanceTimeoutMs = timeoutMs ?? BALANCE_TIMEOUT_MS
    this.#plaid = new PlaidApi(
      new Configuration({
        basePath: baseUrl.replace(/\/$/, ''),
        baseOptions: {
          headers: { 'PLAID-CLIENT-ID': clientId, 'PLAID-SECRET': secret },
          ...{ timeout: timeoutMs ?? TIMEOUT_MS, maxContentLength: LARGEST_ANSWER },
          // keys go nowhere else
          maxRedirects: 0,
        },
      }),
    )
  }

  createLinkToken({ userId, clientName, token }: AskedLinkToken) {
    return answered(async () => {
      const asked: LinkTokenCreateRequest = {
        client_name: [...clientName].slice(0, LONGEST_NAME).join(''),
        ...{ language: 'en', country_codes: [CountryCode.Us], user: { client_user_id: userId } },
        ...(token === null
          ? { products: [Products.Auth], required_if_supported_products: [Products.Transactions] }
          : {
              access_token: token,
              additional_consented_products: [Products.Auth, Products.Transactions],
              update: { account_selection_enabled: true },
            }),
      }
      const { data } = await this.#plaid.linkTokenCreate(asked)
      return { linkToken: data.link_token }
    })
  }

  exchange(publicToken: string) {
    return answered(async () => {
      const { data } = await this.#plaid.itemPublicTokenExchange({ public_token: publicToken })
      return { itemId: data.item_id, token: data.access_token }
    })
  }

  accounts(token: string) {
    return answered(async () => {
      const { data } = await this.#plaid.accountsGet({ access_token: token })
      return { institutionName: data.item.institution_name ?? null, accounts: data.accounts.map(accountOf) }
    })
  }

  balances(token: string): Promise<readonly LinkedBalance[]> {
    return answered(async () => {
      const { data } = await this.#plaid.accountsBalanceGet(
        { access_token: token },
        { timeout: this.#balanceTimeoutMs },
      )
      return data.accounts.map(({ account_id, balances }) => ({
        accountId: account_id,
        currentCents: balances.current === null ? null : centsOf(balances.current),
        availableCents: balances.available === null ? null : centsOf(balances.available),
        currency: currencyOf(balances),
      }))
    })
  }

  numbers(token: string, accountId: string): Promise<LinkedNumbers | null> {
    return answered(async () => {
      const { data } = await this.#plaid.authGet({ access_token: token })
      const account = data.accounts.find((one) => one.account_id === accountId)
      const numbers = data.numbers.ach.find((one) => one.account_id === accountId)
      if (!account || !numbers) return null
      const { type } = accountOf(account)
      if (type === 'other') return null
      return { routingNumber: numbers.routing, accountNumber: numbers.account, accountType: type }
    })
  }

  transactions(token: string, cursor: string | null): Promise<TransactionPage | 'changed_meanwhile'> {
    return answered(async () => {
      try {
        const { data } = await this.#plaid.transactionsSync({
          ...{ access_token: token, count: PAGE },
          ...(cursor === null ? {} : { cursor }),
        })
        return {
          changed: [...data.added, ...data.modified].map(transactionOf),
          removed: data.removed.map(({ transaction_id }) => transaction_id),
          ...{ cursor: data.next_cursor, hasMore: data.has_more },
        }
      } catch (error) {
        if (plaidCode(error) === CHANGED_MEANWHILE) return 'changed_meanwhile'
        throw error
      }
    })
  }
}

async function answered<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  try {
    return await ask()
  } catch (error) {
    throw plaidRefusal(error)
  }
}

function accountOf({ account_id, name, mask, type, subtype }: AccountBase): LinkedAccount {
  const debitable = type === 'depository' ? DEBITABLE[subtype ?? ''] : undefined
  return { accountId: account_id, name, mask, type: debitable ?? 'other' }
}

function transactionOf(transaction: Transaction): LinkedTransaction {
  const { transaction_id, account_id, date, amount, pending, merchant_name, name } = transaction
  return {
    ...{ providerId: transaction_id, accountId: account_id, date, pending },
    ...{ outCents: centsOf(amount), currency: currencyOf(transaction) },
    description: merchant_name ?? name,
  }
}

interface Currency {
  readonly iso_currency_code: string | null
  readonly unofficial_currency_code: string | null
}

function currencyOf({ iso_currency_code, unofficial_currency_code }: Currency): string | null {
  return (iso_currency_code ?? unofficial_currency_code)?.toLowerCase() ?? null
}

/** Plaid's amounts are decimals in JSON numbers. @throws BankLinkRefused for what is no amount. */
function centsOf(amount: number): number {
  const exact = decimal(amount)
  const cents = exact && Number(divideHalfUp(exact.digits * 100n, 10n ** BigInt(exact.scale)))
  if (cents === null || !Number.isSafeInteger(cents)) {
    throw new BankLinkRefused('The bank link answered with an amount that is none')
  }
  return cents
}
