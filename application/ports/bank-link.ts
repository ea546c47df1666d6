/** Which of the bank links a connection was made with. */
export const BANK_LINK_KINDS = ['simulated', 'plaid'] as const
export type BankLinkKind = (typeof BANK_LINK_KINDS)[number]

/**
 * What links bank accounts. Its widget, in the caller's frontend, ends with a public token that stands for an item: a
 * user's log-in at one bank, with its accounts. Tokens of an item are secrets. All calls but the first two only read.
 */
export interface BankLink {
  readonly kind: BankLinkKind
  /** A token that opens the widget. @throws ProviderUnavailable, ProviderRefused; so do all others. */
  createLinkToken(asked: AskedLinkToken): Promise<{ readonly linkToken: string }>
  /**
   * The item that a public token stands for. A public token serves once and for a short time: who repeats the call may be
   * refused, about `public_token`.
   * @param owner whose item it is to be; to the simulated one the same public token is another item of another owner.
   */
  exchange(publicToken: string, owner: string): Promise<LinkedItem>
  accounts(token: string): Promise<{
    /** Null where the item is of no institution. */
    readonly institutionName: string | null
    readonly accounts: readonly LinkedAccount[]
  }>
  /** What the bank says at this moment. */
  balances(token: string): Promise<readonly LinkedBalance[]>
  /** Null where the item has no such account, or none that can be debited. */
  numbers(token: string, accountId: string): Promise<LinkedNumbers | null>
  /**
   * What became of the transactions of the item since a cursor, in parts.
   * @param cursor of the part before; null: from the beginning.
   * @returns `changed_meanwhile`: begin again at the cursor of the last part that was the last one.
   */
  transactions(token: string, cursor: string | null): Promise<TransactionPage | 'changed_meanwhile'>
}

export interface AskedLinkToken {
  /** Tells users apart; it names nobody. */
  readonly userId: string
  /** The name that the widget shows as the asking party. */
  readonly clientName: string
  /** Of an item that is there, to which products and accounts are added; null: a new one. */
  readonly token: string | null
}

export interface LinkedItem {
  readonly itemId: string
  readonly token: string
}

export interface LinkedAccount {
  readonly accountId: string
  readonly name: string
  /** The last digits of its number, where the bank shows them. */
  readonly mask: string | null
  /** Only the first two can be debited. */
  readonly type: 'checking' | 'savings' | 'other'
  /** The bank link's word for why it does not vouch for it; null: it does. */
  readonly unverifiedReason: string | null
  /** The same for the same account in each of its connections, whatever its numbers; absent where the bank link has none. */
  readonly persistentId?: string
}

/** Amounts are cents; null where the bank does not say. */
export interface LinkedBalance {
  readonly accountId: string
  readonly currentCents: number | null
  readonly availableCents: number | null
  /** ISO 4217, lower case. */
  readonly currency: string | null
}

export interface LinkedNumbers {
  readonly routingNumber: string
  readonly accountNumber: string
  readonly accountType: 'checking' | 'savings'
  readonly unverifiedReason: LinkedAccount['unverifiedReason']
  readonly persistentId?: LinkedAccount['persistentId']
}

export interface LinkedTransaction {
  readonly providerId: string
  readonly accountId: string
  /** `YYYY-MM-DD`. */
  readonly date: string
  /** Positive: money that left the account. */
  readonly outCents: number
  /** ISO 4217, lower case. */
  readonly currency: string | null
  readonly pending: boolean
  readonly description: string
}

export interface TransactionPage {
  /** New ones, and those that are another now. */
  readonly changed: readonly LinkedTransaction[]
  /** Ids of those that are no more, such as pending ones that were booked. */
  readonly removed: readonly string[]
  readonly cursor: string
  readonly hasMore: boolean
}
