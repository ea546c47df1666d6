import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import type {
  AccountBase,
  AccountsGetResponse,
  AuthGetResponse,
  ItemPublicTokenExchangeResponse,
  LinkTokenCreateResponse,
  PlaidError,
  Transaction,
  TransactionsSyncResponse,
} from 'plaid'

/** What of the SDK's types matters: enumerations are the words that stand for them. */
type Plain<T> = T extends string
  ? `${T}`
  : T extends (infer One)[]
    ? Plain<One>[]
    : T extends object
      ? { [K in keyof T]: Plain<T[K]> }
      : T

export const PLAID_KEYS = { clientId: 'plaid_client_1', secret: 'plaid_secret_1' } as const

/**
 * What a request runs into: nobody there, no answer, one that breaks off, one that comes byte by byte, another body than
 * there should be, or an error by its type, code and status.
 */
export type PlaidFault =
  | 'unreachable'
  | 'silent'
  | 'cut'
  | 'slow'
  | { readonly body: string; readonly status?: number }
  | { readonly type: string; readonly code: string; readonly status?: number }

/** In all, a slow answer takes two seconds. */
const BLANKS = 40
const BETWEEN_BLANKS_MS = 50

interface Item {
  readonly itemId: string
  readonly token: string
  accounts: readonly Plain<AccountBase>[]
  /** What happened to its transactions, oldest first: a cursor is a place in it. */
  readonly updates: (
    | { readonly what: 'added' | 'modified'; readonly of: Plain<Transaction> }
    | { readonly what: 'removed'; readonly of: Plain<Transaction> }
  )[]
}

class Refused extends Error {
  readonly status: number
  readonly body: Plain<PlaidError>
  constructor(type: string, code: string, status = 400) {
    super(code)
    this.status = status
    this.body = {
      error_type: type as never,
      error_code: code,
      error_message: `${code} said Plaid`,
      display_message: null,
      request_id: 'req',
    }
  }
}

/** The fields that a request to each path may have, those that it must have first. */
const FIELDS: Readonly<Record<string, readonly [readonly string[], readonly string[]]>> = {
  '/link/token/create': [
    ['client_name', 'language', 'country_codes', 'user'],
    ['products', 'required_if_supported_products', 'access_token', 'additional_consented_products', 'update'],
  ],
  '/item/public_token/exchange': [['public_token'], []],
  '/accounts/get': [['access_token'], []],
  '/accounts/balance/get': [['access_token'], []],
  '/auth/get': [['access_token'], []],
  '/transactions/sync': [['access_token'], ['cursor', 'count']],
}

/** Stands in for Plaid: six calls of its API over HTTP, with its keys, its errors, and what can go wrong on the way. */
export class PlaidStandIn {
  /** What was asked, and what was answered. */
  readonly calls: { readonly path: string; readonly asked: Record<string, unknown>; answer: unknown }[] = []
  readonly #server: Server
  readonly #items = new Map<string, Item>()
  /** Items by public tokens that nobody has exchanged yet. */
  readonly #open = new Map<string, Item>()
  #made = 0
  #fault: { readonly fault: PlaidFault; readonly path: RegExp; times: number } | null = null

  private constructor() {
    this.#server = createServer((request, response) => void this.#serve(request, response))
  }

  static async start(): Promise<PlaidStandIn> {
    const standIn = new PlaidStandIn()
    await new Promise<void>((resolve) => standIn.#server.listen(0, '127.0.0.1', resolve))
    return standIn
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** The settings of a service that takes the stand-in for Plaid. */
  get settings(): Record<string, string> {
    const { clientId: PLAID_CLIENT_ID, secret: PLAID_SECRET } = PLAID_KEYS
    return { BANKCONNECT: 'plaid', PLAID_CLIENT_ID, PLAID_SECRET, PLAID_BASE_URL: this.url }
  }

  /** Somebody logs in at a bank, by the widget. @returns what its callback is given. */
  logIn(): string {
    this.#made += 1
    const n = this.#made
    const item: Item = {
      itemId: `item-${n}`,
      token: `access-production-${n}`,
      accounts: [
        accountOf(n, 'checking', 110.94),
        accountOf(n, 'savings', 0.1),
        { ...accountOf(n, 'cd', 1_000), subtype: 'credit card', type: 'credit', mask: null },
      ],
      updates: [],
    }
    this.#items.set(item.token, item)
    const publicToken = `public-production-${n}`
    this.#open.set(publicToken, item)
    return publicToken
  }

  /** What Plaid says of whether the first account of the latest item is its user's. */
  verify(verification_status: string | null): void {
    this.say({ verification_status })
  }

  /** What Plaid says of the first account of the latest item from now on. */
  say(changed: object): void {
    const item = [...this.#items.values()].at(-1)!
    const [first, ...others] = item.accounts
    item.accounts = [{ ...first!, ...changed } as Plain<AccountBase>, ...others]
  }

  /** The first account of the latest item is listed no more. @returns how it is listed again. */
  unlist(): () => void {
    const item = [...this.#items.values()].at(-1)!
    const { accounts } = item
    item.accounts = accounts.slice(1)
    return () => {
      item.accounts = accounts
    }
  }

  /** Something happened to a transaction of the latest item. */
  happen(what: Item['updates'][number]['what'], of: Partial<Plain<Transaction>> = {}): void {
    const item = [...this.#items.values()].at(-1)!
    item.updates.push({ what, of: { ...transactionOf(item, item.updates.length), ...of } })
  }

  /** Lets the next requests for some paths fail. */
  fail(fault: PlaidFault, { times = 1, path = /./ }: { times?: number; path?: RegExp } = {}): void {
    this.#fault = times === 0 ? null : { fault, path, times }
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const path = request.url ?? ''
    const fault = this.#takeFault(path)
    if (fault === 'unreachable') request.socket.destroy()
    if (fault === 'unreachable' || fault === 'silent') return
    const send = async (status: number, body: string) => {
      response.writeHead(status, { 'Content-Type': 'application/json', Location: this.url })
      if (fault === 'cut') {
        response.write(body.slice(0, body.length / 2), () => request.socket.destroy())
        return
      }
      for (let blank = 0; fault === 'slow' && blank < BLANKS && !response.destroyed; blank += 1) {
        response.write(' ')
        await setTimeout(BETWEEN_BLANKS_MS)
      }
      response.end(body)
    }
    try {
      const { headers, method } = request
      if (method !== 'POST' || !(path in FIELDS)) throw new Refused('INVALID_REQUEST', 'NOT_FOUND', 404)
      if (headers['plaid-version'] !== '2020-09-14') throw new Error('No version of the API is named')
      if (
        headers['plaid-client-id'] !== PLAID_KEYS.clientId ||
        headers['plaid-secret'] !== PLAID_KEYS.secret
      ) {
        throw new Refused('INVALID_INPUT', 'INVALID_API_KEYS')
      }
      const asked = JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>
      const call = { path, asked, answer: null as unknown }
      this.calls.push(call)
      if (fault !== null && typeof fault === 'object') {
        if ('code' in fault) throw new Refused(fault.type, fault.code, fault.status)
        return await send(fault.status ?? 200, fault.body)
      }
      const [required, optional] = FIELDS[path]!
      if (required.some((name) => !(name in asked))) throw new Refused('INVALID_REQUEST', 'MISSING_FIELDS')
      if (Object.keys(asked).some((name) => !required.includes(name) && !optional.includes(name))) {
        throw new Refused('INVALID_REQUEST', 'UNKNOWN_FIELDS')
      }
      call.answer = this.#answer(path, asked)
      await send(200, JSON.stringify(call.answer))
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      await send(error.status, JSON.stringify(error.body))
    }
  }

  #takeFault(path: string): PlaidFault | null {
    const set = this.#fault
    if (!set?.path.test(path)) return null
    set.times -= 1
    if (set.times === 0) this.#fault = null
    return set.fault
  }

  #answer(path: string, asked: Record<string, unknown>): unknown {
    const request_id = `req${this.calls.length}`
    if (path === '/link/token/create') {
      if (asked.access_token !== undefined) this.#itemOf(asked)
      else if (!Array.isArray(asked.products)) throw new Refused('INVALID_REQUEST', 'MISSING_FIELDS')
      const link_token = `link-production-${this.calls.length}`
      return { link_token, expiration: '2026-01-01T04:00:00Z', request_id } satisfies LinkTokenCreateResponse
    }
    if (path === '/item/public_token/exchange') {
      const item = this.#open.get(String(asked.public_token))
      if (!item) throw new Refused('INVALID_INPUT', 'INVALID_PUBLIC_TOKEN')
      this.#open.delete(String(asked.public_token))
      const { token: access_token, itemId: item_id } = item
      return { access_token, item_id, request_id } satisfies ItemPublicTokenExchangeResponse
    }
    const item = this.#itemOf(asked)
    if (path === '/transactions/sync') return { ...this.#sync(item, asked), request_id }
    const all: Plain<AccountsGetResponse> = {
      accounts: [...item.accounts],
      item: {
        item_id: item.itemId,
        institution_id: 'ins_109508',
        institution_name: 'First Platypus Bank',
        webhook: null,
        error: null,
        available_products: ['balance'],
        billed_products: ['auth'],
        consent_expiration_time: null,
        update_type: 'background' as const,
        auth_method: null,
      },
      request_id,
    }
    if (path !== '/auth/get') return all
    const ach = item.accounts
      .filter(({ type }) => type === 'depository')
      .map(({ account_id, mask }) => ({
        account_id,
        account: `111122223333${mask}`,
        routing: '011401533',
        wire_routing: '021000021',
      }))
    const numbers = { ach, eft: [], international: [], bacs: [] }
    return { ...all, numbers } satisfies Plain<AuthGetResponse>
  }

  #sync(item: Item, { cursor, count = 100 }: Record<string, unknown>) {
    const from = typeof cursor === 'string' ? Number(Buffer.from(cursor, 'base64')) : 0
    if (!Number.isInteger(from)) throw new Refused('INVALID_INPUT', 'INVALID_FIELD')
    const page = item.updates.slice(from, from + Number(count))
    const of = (wanted: string) => page.filter(({ what }) => what === wanted).map((one) => one.of)
    const reached = from + page.length
    return {
      added: of('added'),
      modified: of('modified'),
      removed: of('removed').map(({ transaction_id, account_id }) => ({ transaction_id, account_id })),
      accounts: [...item.accounts],
      next_cursor: item.updates.length === 0 ? '' : Buffer.from(String(reached)).toString('base64'),
      has_more: reached < item.updates.length,
      transactions_update_status: 'HISTORICAL_UPDATE_COMPLETE' as const,
    } satisfies Omit<Plain<TransactionsSyncResponse>, 'request_id'>
  }

  #itemOf({ access_token }: Record<string, unknown>): Item {
    const item = this.#items.get(String(access_token))
    if (!item) throw new Refused('INVALID_INPUT', 'INVALID_ACCESS_TOKEN')
    return item
  }
}

function accountOf(n: number, subtype: 'checking' | 'savings' | 'cd', dollars: number): Plain<AccountBase> {
  return {
    account_id: `account-${n}-${subtype}`,
    name: `Plaid ${subtype}`,
    official_name: null,
    mask: String(1_000 + n).slice(-4),
    type: 'depository',
    subtype,
    balances: {
      available: subtype === 'savings' ? null : dollars - 10,
      current: dollars,
      limit: null,
      iso_currency_code: 'USD',
      unofficial_currency_code: null,
    },
  }
}

function transactionOf(item: Item, index: number): Plain<Transaction> {
  const location = {
    address: null,
    city: null,
    region: null,
    postal_code: null,
    country: null,
    lat: null,
    lon: null,
    store_number: null,
  }
  const payment_meta = {
    by_order_of: null,
    payee: null,
    payer: null,
    payment_method: null,
    payment_processor: null,
    ppd_id: null,
    reason: null,
    reference_number: null,
  }
  return {
    transaction_id: `transaction-${item.itemId}-${index}`,
    account_id: item.accounts[0]!.account_id,
    amount: 72.1,
    iso_currency_code: 'USD',
    unofficial_currency_code: null,
    date: '2026-02-03',
    name: 'PURCHASE WM SUPERCENTER #1700',
    merchant_name: 'Walmart',
    pending: false,
    location,
    payment_meta,
    payment_channel: 'in store',
    pending_transaction_id: null,
    account_owner: null,
    authorized_date: null,
    authorized_datetime: null,
    datetime: null,
    transaction_code: null,
  }
}
