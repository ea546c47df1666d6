import { hash } from 'node:crypto'
import type {
  AskedLinkToken,
  BankLink,
  LinkedAccount,
  LinkedBalance,
  LinkedTransaction,
} from '../../../application/ports/bank-link.ts'
import type { Faults } from '../../../application/ports/faults.ts'
import { ProviderRefused, ProviderUnavailable } from '../../../application/ports/provider.ts'

const PUBLIC_TOKEN = /^public-sandbox-[\w-]{1,200}$/
const TOKEN = /^access_sim_([0-9a-f]{24})$/
const INSTITUTION = 'Simulated Bank'
/** A routing number whose check digit is right, and which is no bank's. */
const ROUTING_NUMBER = '110000000'
const DAY_MS = 86_400_000
/** Transactions of an item, and how many of them come at once. */
const TRANSACTIONS = 18
const PAGE = 10
const FIRST_DAY = Date.UTC(2026, 0, 5)
const DESCRIPTIONS = [
  'Customer payment',
  'Office supplies',
  'Fuel',
  'Card sales',
  'Rent',
  'Insurance premium',
]

/**
 * Stands for a bank link: there is no bank. It keeps nothing: an item follows from its public token and its owner, and has
 * a checking and a savings account with numbers, balances and transactions that never change.
 */
export class SimulatedBankLink implements BankLink {
  readonly kind = 'simulated'
  readonly #faults: Pick<Faults, 'take'>

  constructor(faults: Pick<Faults, 'take'>) {
    this.#faults = faults
  }

  async createLinkToken({ userId, token }: AskedLinkToken) {
    await this.#meetFaults()
    const what = token === null ? 'new' : seedOf(token)
    return { linkToken: `link-sandbox-${digest(`link/${userId}/${what}`)}` }
  }

  async exchange(publicToken: string, owner: string) {
    await this.#meetFaults('public_token')
    if (!PUBLIC_TOKEN.test(publicToken)) {
      throw new ProviderRefused('The bank link knows no such public token', 'public_token')
    }
    const seed = digest(`item/${owner}/${publicToken}`)
    return { itemId: `item_sim_${seed}`, token: `access_sim_${seed}` }
  }

  async accounts(token: string) {
    await this.#meetFaults()
    const seed = seedOf(token)
    return { institutionName: INSTITUTION, accounts: accountsOf(seed).map(({ account }) => account) }
  }

  async balances(token: string): Promise<readonly LinkedBalance[]> {
    await this.#meetFaults()
    return accountsOf(seedOf(token)).map(({ account: { accountId } }) => {
      const currentCents = 1_000_000 + numberFrom(`balance/${accountId}`, 5_000_000)
      return { accountId, currentCents, availableCents: currentCents - 2_500, currency: 'usd' }
    })
  }

  async numbers(token: string, accountId: string) {
    await this.#meetFaults()
    return accountsOf(seedOf(token)).find(({ account }) => account.accountId === accountId)?.numbers ?? null
  }

  async transactions(token: string, cursor: string | null) {
    await this.#meetFaults()
    const seed = seedOf(token)
    const all = transactionsOf(seed)
    const from = Number(cursor?.replace('sim_', '') ?? 0)
    const changed = all.slice(from, from + PAGE)
    const reached = from + changed.length
    return { changed, removed: [], cursor: `sim_${reached}`, hasMore: reached < all.length }
  }

  async #meetFaults(about: 'public_token' | null = null): Promise<void> {
    const fault = await this.#faults.take('bank-link', ['unreachable', 'timeout', 'decline'])
    if (fault === 'unreachable') {
      throw new ProviderUnavailable('The bank link could not be reached', { nothingHappened: true })
    }
    if (fault === 'timeout') throw new ProviderUnavailable('The bank link did not answer in time')
    if (fault === 'decline') throw new ProviderRefused('The bank link declined', about)
  }
}

function accountsOf(seed: string) {
  const account = (type: 'checking' | 'savings', name: string) => {
    const accountNumber = String(1_000_000_000 + numberFrom(`number/${seed}/${type}`, 1_000_000_000))
    const accountId = `acc_sim_${digest(`account/${seed}/${type}`)}`
    const unverifiedReason = null
    const linked: LinkedAccount = { accountId, name, mask: accountNumber.slice(-4), type, unverifiedReason }
    const numbers = { routingNumber: ROUTING_NUMBER, accountNumber, accountType: type, unverifiedReason }
    return { account: linked, numbers }
  }
  return [account('checking', 'Business Checking'), account('savings', 'Business Savings')] as const
}

/** Every third one comes in; the last two are pending. */
function transactionsOf(seed: string): readonly LinkedTransaction[] {
  const [checking, savings] = accountsOf(seed)
  return Array.from({ length: TRANSACTIONS }, (_, index) => {
    const cents = 1_000 + numberFrom(`amount/${seed}/${index}`, 250_000)
    return {
      providerId: `tx_sim_${digest(`transaction/${seed}/${index}`)}`,
      accountId: (index % 4 === 3 ? savings : checking).account.accountId,
      date: new Date(FIRST_DAY + index * 3 * DAY_MS).toISOString().slice(0, 10),
      outCents: index % 3 === 0 ? -cents : cents,
      currency: 'usd',
      pending: index >= TRANSACTIONS - 2,
      description: DESCRIPTIONS[index % DESCRIPTIONS.length]!,
    }
  })
}

/** @throws ProviderRefused for a token that is of no item. */
function seedOf(token: string): string {
  const seed = TOKEN.exec(token)?.[1]
  if (seed === undefined) throw new ProviderRefused('The bank link knows no such item')
  return seed
}

function digest(text: string): string {
  return hash('sha256', text, 'hex').slice(0, 24)
}

/** A number from 0 up to a limit, the same for the same text. */
function numberFrom(text: string, limit: number): number {
  return Number(BigInt(`0x${digest(text)}`) % BigInt(limit))
}
