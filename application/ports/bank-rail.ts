/** What moves debits through banks. What becomes of them is reported later. */
export interface BankRail {
  /** The simulated one moves nothing: operators play what banks report. */
  readonly kind: 'simulated'
  /**
   * Hands over a batch that has closed. The same batch again is the same one: whoever died meanwhile repeats it.
   * @throws ProviderUnavailable, ProviderRefused: then nothing of it moves.
   */
  submit(batch: RailBatch): Promise<void>
}

/** A batch, which is known by its close. */
export interface RailBatch {
  /** Epoch milliseconds. */
  readonly closesAt: number
  /** The debits in it, page by page, in the order of their creation. */
  readonly entries: AsyncIterable<readonly RailEntry[]>
}

/** What is taken from an account. */
export interface RailEntry {
  /** Our id of the debit, which reports name again. */
  readonly legId: string
  readonly amountCents: number
  /** `YYYY-MM-DD`: the banking day on which it takes effect. */
  readonly effectiveDate: string
  readonly account: BankAccount
}

/** A bank account in plain text. */
export interface BankAccount {
  readonly holderName: string
  readonly routingNumber: string
  readonly accountNumber: string
  readonly accountType: 'checking' | 'savings'
  readonly bankName: string | null
}

/** What a bank, or the processor between, reports of a debit. Dates are `YYYY-MM-DD`. */
export type RailReport =
  /** It has the file with the debit. */
  | { readonly verb: 'acknowledge' }
  | {
      readonly verb: 'settle'
      /** The processor's word; null: it gave none. */
      readonly processorStatus: string | null
      readonly transmissionDate: string | null
      readonly effectiveDate: string | null
    }
  | { readonly verb: 'return'; readonly returnCode: string }
