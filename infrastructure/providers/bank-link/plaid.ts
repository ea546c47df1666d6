import { Configuration, CountryCode, type LinkTokenCreateRequest, PlaidApi, Products } from 'plaid'
import type { z } from 'zod'
import { technicalDeadline } from '../../../application/commands/technical-deadlines.ts'
import type {
  AskedLinkToken,
  BankLink,
  LinkedBalance,
  LinkedNumbers,
  TransactionPage,
} from '../../../application/ports/bank-link.ts'
import { ProviderUnavailable } from '../../../application/ports/provider.ts'
import { traceHeaders } from '../../../application/ports/tracing.ts'
import { ANSWERS, readAs } from './plaid-answers.ts'
import { isOfSdk, PlaidRefused, refusalOf } from './plaid-errors.ts'

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

export interface PlaidSettings {
  readonly clientId: string
  readonly secret: string
  /** `https://production.plaid.com`, or what stands in for it. */
  readonly baseUrl: string
  /** Real milliseconds that Plaid may take for a whole answer, default 10000, and 35000 for balances. */
  readonly timeoutMs?: number
}

/** What a call is made with. */
interface CallOptions {
  readonly signal: AbortSignal
  readonly headers: Readonly<Record<string, string>>
}

/** Plaid, by its own SDK. */
export class PlaidBankLink implements BankLink {
  readonly kind = 'plaid'
  readonly #plaid: PlaidApi
  readonly #timeoutMs: number
  readonly #balanceTimeoutMs: number

  constructor({ clientId, secret, baseUrl, timeoutMs }: PlaidSettings) {
    this.#timeoutMs = timeoutMs ?? technicalDeadline(TIMEOUT_MS)
    this.#balanceTimeoutMs = timeoutMs ?? technicalDeadline(BALANCE_TIMEOUT_MS)
    this.#plaid = new PlaidApi(
      new Configuration({
        basePath: baseUrl.replace(/\/$/, ''),
        baseOptions: {
          headers: { 'PLAID-CLIENT-ID': clientId, 'PLAID-SECRET': secret },
          maxContentLength: LARGEST_ANSWER,
          // keys go nowhere else
          maxRedirects: 0,
          // what an answer means is told here
          validateStatus: null,
        },
      }),
    )
  }

  createLinkToken({ userId, clientName, token }: AskedLinkToken) {
    const asked: LinkTokenCreateRequest = {
      client_name: [...clientName].slice(0, LONGEST_NAME).join(''),
      language: 'en',
      country_codes: [CountryCode.Us],
      user: { client_user_id: userId },
      ...(token === null
        ? { products: [Products.Auth], required_if_supported_products: [Products.Transactions] }
        : {
            access_token: token,
            additional_consented_products: [Products.Auth, Products.Transactions],
            update: { account_selection_enabled: true },
          }),
    }
    return this.#answered(ANSWERS.linkToken, (options) => this.#plaid.linkTokenCreate(asked, options))
  }

  exchange(public_token: string) {
    return this.#answered(ANSWERS.item, (options) =>
      this.#plaid.itemPublicTokenExchange({ public_token }, options),
    )
  }

  accounts(access_token: string) {
    return this.#answered(ANSWERS.accounts, (options) => this.#plaid.accountsGet({ access_token }, options))
  }

  balances(access_token: string): Promise<readonly LinkedBalance[]> {
    const ask = (options: CallOptions) => this.#plaid.accountsBalanceGet({ access_token }, options)
    return this.#answered(ANSWERS.balances, ask, this.#balanceTimeoutMs)
  }

  async numbers(access_token: string, accountId: string): Promise<LinkedNumbers | null> {
    const { accounts, numbers } = await this.#answered(ANSWERS.numbers, (options) =>
      this.#plaid.authGet({ access_token }, options),
    )
    const account = accounts.find((one) => one.accountId === accountId)
    const found = numbers.ach.find((one) => one.account_id === accountId)
    if (!found || !account || account.type === 'other') return null
    const { type: accountType, unverifiedReason, persistentId } = account
    const numbersOfOne = readAs(ANSWERS.numbersOfOne, found)
    return { ...numbersOfOne, accountType, unverifiedReason, ...(persistentId && { persistentId }) }
  }

  async transactions(
    access_token: string,
    cursor: string | null,
  ): Promise<TransactionPage | 'changed_meanwhile'> {
    const asked = { access_token, count: PAGE, ...(cursor === null ? {} : { cursor }) }
    try {
      return await this.#answered(ANSWERS.transactions, (options) =>
        this.#plaid.transactionsSync(asked, options),
      )
    } catch (error) {
      if (error instanceof PlaidRefused && error.code === CHANGED_MEANWHILE) return 'changed_meanwhile'
      throw error
    }
  }

  /**
   * What Plaid answers to a call, in time and as a whole.
   * @param withinMs for all of the answer.
   * @throws ProviderUnavailable, also where it answers nothing of the kind; ProviderRefused.
   */
  async #answered<Answer>(
    kind: z.ZodType<Answer>,
    call: (options: CallOptions) => Promise<{ readonly status: number; readonly data: unknown }>,
    withinMs = this.#timeoutMs,
  ): Promise<Answer> {
    const options = { signal: AbortSignal.timeout(withinMs), headers: { ...traceHeaders() } }
    const { status, data } = await call(options).catch((error) => {
      if (!isOfSdk(error)) throw error
      throw new ProviderUnavailable('The bank link could not be reached, or did not answer in time')
    })
    if (status < 200 || status > 299) throw refusalOf(status, data)
    return readAs(kind, data)
  }
}
