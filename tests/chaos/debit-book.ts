import type { SeededTenant } from '../support/seed.ts'
import { atNewYork, bankingDayAfter, type Slot, slotAt } from './bank-calendar.ts'
import type { ReadEntry } from './reading-bank.ts'

/** What should become of debits, by what was asked for, decided and reported. Amounts are cents, days those of New York. */
export interface BookCarrier {
  readonly id: string
  readonly settlement: 'fbo' | 'direct' | null
}
export interface BookPolicy {
  readonly id: string
  readonly number: string
  readonly carrier: BookCarrier
  isCancelled: boolean
  isBilledDirectly: boolean
}
export interface BookAccount {
  readonly id: string
  routing: string
  number: string
  type: 'checking' | 'savings'
  isActive: boolean
  isDisabled: boolean
  /** Whether its routing number has the right check digit. */
  readonly isWritable: boolean
  /** The batch that two credits to it go with, and what they were. */
  credits: { readonly batch: string; cents: readonly number[] } | null
}
export interface BookEmployer {
  readonly id: string
  readonly name: string
  readonly fein: string
  readonly tenant: SeededTenant
  readonly environment: 'live' | 'sandbox'
  readonly policies: readonly BookPolicy[]
  /** The last one is the one that is used. */
  readonly accounts: BookAccount[]
  /** Its usual debits lie between this and half as much again. */
  readonly usualCents: number
}
export interface LegacyRecord {
  readonly id: string
  readonly employer: BookEmployer
  readonly cents: number
  readonly start: string
  readonly end: string
  status: string
}

/** An entry that a bank was given. */
export interface Presentment extends Slot {
  /** Those that its entry carried. */
  readonly numbers: Pick<BookAccount, 'routing' | 'number'>
  readonly trace: string
  readonly file: string
  fate: 'none' | 'rejected' | string
}
export type Standing =
  | 'pending'
  | 'quarantined'
  | 'Scheduled'
  | 'submitted'
  | 'returned'
  | 'failed'
  | 'cancelled'
  | 'legacy_collected'
export interface Debit {
  readonly id: string
  readonly cents: number
  readonly employer: BookEmployer
  readonly policy: BookPolicy
  readonly account: BookAccount
  readonly createdAt: number
  /** The day that was asked for, and that which gates take it to be of. */
  readonly wanted: string | null
  readonly day: string
  /** Of a payroll file. */
  readonly period: { readonly start: string; readonly end: string } | null
  readonly isUnusual: boolean
  standing: Standing
  isReleased: boolean
  slot: Slot | null
  readonly presentments: Presentment[]
  representments: number
  isReceived: boolean
}

/** Return codes that the bank of the test uses, and whether they disable the account. */
export const CODES: Readonly<Record<string, boolean>> = {
  R01: false,
  R09: false,
  R08: false,
  R02: true,
  R03: true,
  R10: true,
  R16: true,
  R29: true,
}
const REPRESENTABLE = ['R01', 'R09']
/** Statuses of debits that count for the mean of an employer. */
const COUNTED: readonly Standing[] = ['Scheduled', 'submitted', 'legacy_collected']
const COLLECTED = ['pending', 'at_sb', 'file_transmitted', 'sb_remit', 'legacy_collected']
const RECENT_MS = 90 * 86_400_000
/** Banking days after which a debit that did not come back is processed. */
const RETURN_DAYS = 2

export type Outcome = 'applied' | 'repeated' | 'parked'

export class DebitBook {
  readonly debits: Debit[] = []
  readonly legacy: LegacyRecord[] = []
  /** Credits that are the money of no debit, by carrier. */
  readonly unmatched = new Map<BookCarrier, number>()
  /** Days on which the bank took debits, and on which they came back, by tenant. */
  readonly taken: { readonly tenant: SeededTenant; readonly day: string }[] = []
  readonly cameBack: { readonly tenant: SeededTenant; readonly day: string }[] = []
  /** Answers to files that came when debits of them had been presented again. */
  lateAnswers = 0
  readonly #byTrace = new Map<string, { readonly debit: Debit; readonly presentment: Presentment }>()

  accept(
    debit: Omit<Debit, 'standing' | 'isReleased' | 'slot' | 'presentments' | 'representments' | 'isReceived'>,
  ) {
    this.debits.push({
      ...debit,
      standing: 'pending',
      isReleased: false,
      slot: null,
      presentments: [],
      representments: 0,
      isReceived: false,
    })
  }

  /** A run of the batch worker. */
  run(now: number): void {
    for (const debit of this.debits.filter(({ standing }) => standing === 'pending')) {
      const stop = this.#stopOf(debit)
      if (stop === null && debit.isUnusual && !debit.isReleased) debit.standing = 'quarantined'
      else debit.standing = stop ?? 'Scheduled'
      if (debit.standing === 'Scheduled') debit.slot = slotAt(now, debit.wanted)
    }
  }

  /** The close of a day's batch. @returns those whose entries stand in a file then. */
  close(day: string): readonly Debit[] {
    const inBatch = this.debits.filter((debit) => debit.standing === 'Scheduled' && debit.slot!.batch === day)
    for (const debit of inBatch) debit.standing = this.#stopOf(debit) ?? debit.standing
    const live = inBatch.filter(
      ({ standing, employer }) => standing === 'Scheduled' && employer.environment === 'live',
    )
    for (const debit of live) if (!debit.account.isWritable) debit.standing = 'failed'
    return live.filter(({ standing }) => standing === 'Scheduled')
  }

  /** The bank has an entry in its hands. */
  sent(debit: Debit, { trace, file }: ReadEntry): void {
    const { routing, number } = debit.account
    const numbers = { routing, number }
    const presentment: Presentment = { ...debit.slot!, numbers, trace, file, fate: 'none' }
    debit.presentments.push(presentment)
    this.#byTrace.set(trace, { debit, presentment })
  }

  /** The bank took an entry, or would not. What has come back meanwhile stays as it is. */
  answered(trace: string, outcome: 'accepted' | 'rejected', day: string): void {
    const { debit, presentment } = this.#byTrace.get(trace)!
    if (outcome === 'rejected') presentment.fate = 'rejected'
    if (presentment !== current(debit)) this.lateAnswers += 1
    if (presentment !== current(debit) || debit.standing !== 'Scheduled') return
    debit.standing = outcome === 'accepted' ? 'submitted' : 'failed'
    if (outcome === 'accepted') this.taken.push({ tenant: debit.employer.tenant, day })
  }

  /** An entry comes back. */
  returned(trace: string, cents: number, code: string, day: string): Outcome {
    const found = this.#byTrace.get(trace)
    if (found?.debit.cents !== cents || !(code in CODES)) return 'parked'
    const { debit, presentment } = found
    if (presentment !== current(debit)) return 'parked'
    if (debit.standing === 'returned') return presentment.fate === code ? 'repeated' : 'parked'
    if (debit.standing !== 'Scheduled' && debit.standing !== 'submitted') return 'parked'
    Object.assign(debit, { standing: 'returned', isReceived: false })
    presentment.fate = code
    this.cameBack.push({ tenant: debit.employer.tenant, day })
    // of numbers that the bank has corrected since it says nothing of the account
    const { account } = debit
    const { routing, number } = presentment.numbers
    const areCurrent = account.routing === routing && account.number === number
    if (CODES[code] && areCurrent) this.#disable(account)
    return 'applied'
  }

  mayBeRepresented(debit: Debit): boolean {
    const { standing, account, representments } = debit
    return (
      standing === 'returned' &&
      !account.isDisabled &&
      representments < 2 &&
      REPRESENTABLE.includes(debit.presentments.at(-1)!.fate)
    )
  }

  represent(debit: Debit, now: number): void {
    const again = { standing: 'Scheduled', slot: slotAt(now, null), representments: debit.representments + 1 }
    Object.assign(debit, again)
  }

  /** Whether an amount is far above twice the mean of an employer's recent debits, whichever of the day's count. */
  isFarAboveMean(employer: BookEmployer, cents: number, now: number): boolean {
    const recent = this.debits.filter(
      (debit) =>
        debit.employer === employer && COUNTED.includes(debit.standing) && debit.createdAt >= now - RECENT_MS,
    )
    const sum = recent.reduce((total, debit) => total + debit.cents, 0)
    return recent.length >= 4 && cents * recent.length > 3 * sum
  }

  /** Whether it can be called off: it is in quarantine, or its batch has not closed. */
  isOpen({ standing, slot }: Debit, now: number): boolean {
    return standing === 'quarantined' || (standing === 'Scheduled' && now < atNewYork(slot!.batch, '17:00'))
  }

  /** Whether the entry by which it is presented now stands in a file. */
  isInFile(debit: Debit): boolean {
    return current(debit) !== undefined
  }

  /** The status that ledgers show on the morning of a day. */
  statusOn(debit: Debit, day: string): string {
    if (debit.standing !== 'submitted') return debit.standing
    return day >= bankingDayAfter(debit.slot!.entryDate, RETURN_DAYS) ? 'processed' : 'submitted'
  }

  /** What the accounts of a carrier hold. */
  balancesOf(carrier: BookCarrier): Readonly<Record<string, number>> {
    const cents = { due: 0, in_file: 0, at_bank: 0, received: 0, returned: 0 }
    for (const debit of this.debits.filter(({ policy }) => policy.carrier === carrier)) {
      const { standing, isReceived } = debit
      if (standing === 'pending' || standing === 'quarantined') cents.due += debit.cents
      if (standing === 'Scheduled') cents[this.isInFile(debit) ? 'in_file' : 'due'] += debit.cents
      if (standing === 'submitted') cents[isReceived ? 'received' : 'at_bank'] += debit.cents
      if (standing === 'returned') cents.returned += debit.cents
    }
    return { ...cents, unmatched: this.unmatched.get(carrier) ?? 0 }
  }

  #disable(account: BookAccount): void {
    account.isDisabled = true
    const open: readonly Standing[] = ['pending', 'quarantined', 'Scheduled']
    for (const debit of this.debits.filter((one) => one.account === account && open.includes(one.standing))) {
      // what stands in a file comes back by itself
      if (!this.isInFile(debit)) debit.standing = 'failed'
    }
  }

  #stopOf({ policy, employer, cents, day, period }: Debit): Standing | null {
    if (policy.isBilledDirectly || policy.isCancelled) return 'failed'
    const { start, end } = period ?? { start: day, end: day }
    const isCollected = this.legacy.some(
      (record) =>
        record.employer === employer &&
        record.cents === cents &&
        COLLECTED.includes(record.status) &&
        (period === null
          ? record.start <= start && record.end >= end
          : record.start === start && record.end === end),
    )
    return isCollected ? 'legacy_collected' : null
  }
}

/** The entry by which a debit is presented now; undefined: none stands in a file. */
function current({ presentments, representments }: Debit): Presentment | undefined {
  return presentments[representments]
}
