import type { CommandContext } from './command-context.ts'

/** What moves debits through banks. What becomes of them is reported later. */
export interface BankRail {
  /** The simulated one moves nothing: operators simulate what banks report. The other writes files for a bank. */
  readonly kind: 'simulated' | 'nacha'
  /**
   * Hands over a batch that has closed. The same batch again is the same one: a repetition after a crash is safe, and what
   * was handed over is not handed over again.
   * @throws ProviderUnavailable, ProviderRefused: then nothing more of it moves.
   */
  submit(batch: RailBatch): Promise<void>
  /**
   * Pays the two credits that prove whose an account is. The same deposits again are the same ones: they are paid once.
   * @throws ProviderUnavailable, ProviderRefused: then nothing of them moves.
   */
  sendMicroDeposits(deposits: MicroDeposits): Promise<void>
}

/** Two different credits under one dollar, by which the owner of an account shows that it can be seen. */
export interface MicroDeposits {
  /** Our id of both, which their amounts follow from. */
  readonly depositsId: string
  /** Our id of the account, whose numbers they are paid to when they go, and which is disabled where they come back. */
  readonly achAccountId: string
  readonly account: BankAccount
}

/** A batch, which is known by its close. */
export interface RailBatch {
  /** Epoch milliseconds. */
  readonly closesAt: number
  /** The debits in it, page by page, in the order of their creation. */
  readonly entries: AsyncIterable<readonly RailEntry[]>
  /** Tells that an entry cannot be handed over, and why: its debit has failed then. The others go. */
  readonly refuse: (entry: RailEntry, note: string) => Promise<void>
  /** On whose behalf it is handed over. */
  readonly context: CommandContext
  /** Aborts when the time is up: stop at the next safe point by throwing its reason. */
  readonly signal: AbortSignal
}

/** What is taken from an account. */
export interface RailEntry {
  /** Our id of the debit, which reports name again. */
  readonly debitId: string
  readonly amountCents: number
  /** `YYYY-MM-DD`: the banking day on which it takes effect. */
  readonly effectiveDate: string
  /** Null: it cannot be read, which is a refusal. */
  readonly account: BankAccount | null
  /** What its numbers are known by. */
  readonly fingerprint: string
  /** The debit was returned before, and is presented again. */
  readonly isRetry: boolean
  /** Why it must not be handed over any more, unless it was already; null: nothing is against it. */
  readonly refusal: string | null
}

/** A bank account in plain text. */
export interface BankAccount {
  readonly holderName: string
  readonly routingNumber: string
  readonly accountNumber: string
  readonly accountType: 'checking' | 'savings'
  readonly bankName: string | null
}

/** How the processor says that a debit stands. Dates are `YYYY-MM-DD`. */
export interface ReportedSettlement {
  /** The processor's word; null: it gave none. */
  readonly processor_status: string | null
  readonly transmission_date: string | null
  readonly effective_date: string | null
}

/** What a bank, or the processor between, reports of a debit. */
export type RailReport =
  /** The bank has the file with the debit. */
  | { readonly verb: 'acknowledge' }
  | { readonly verb: 'settle'; readonly settlement: ReportedSettlement }
  | { readonly verb: 'return'; readonly return_code: string }
