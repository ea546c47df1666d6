import type { Reported } from '../support/nacha-files.ts'
import type { SeededRandom } from '../support/seeded-random.ts'
import { atNewYork, bankingDayAfter } from './bank-calendar.ts'
import type { BookAccount, Debit } from './debit-book.ts'
import { ACCOUNT_CHECK, type ReadFile } from './reading-bank.ts'

/** What a bank makes of the files that it is given, and when it says so. */
export interface DueAnswer {
  readonly file: ReadFile
  /** Numbers of the batches that it would not take. */
  readonly rejected: readonly number[]
  /** An operator is told, who types it in. */
  readonly isTyped: boolean
}
/** What is right of an account from now on. */
type Correction = Partial<Pick<BookAccount, 'routing' | 'number' | 'type'>>
export interface DueItem {
  readonly report: Reported
  readonly trace: string
  /** Cents; of a change 0. */
  readonly cents: number
  /** Of a change that can be applied. */
  readonly change: { readonly account: BookAccount; readonly correction: Correction } | null
}
type Dated<Due> = Due & { readonly day: string }

/** With right check digits. */
export const ROUTINGS = [
  ...['011000015', '021000021', '091000019', '121000248', '111000025'],
  ...['026009593', '122000247', '071000013', '061000052'],
] as const

/** What becomes of entries, of a thousand; and within how many banking days. */
const FATES = [
  { of: 60, code: 'R01', least: 2, most: 2 },
  { of: 12, code: 'R01', least: 6, most: 25 },
  { of: 15, code: 'R09', least: 2, most: 2 },
  { of: 10, code: 'R08', least: 2, most: 3 },
  { of: 8, code: 'R02', least: 2, most: 2 },
  { of: 8, code: 'R03', least: 2, most: 2 },
  { of: 3, code: 'R16', least: 2, most: 2 },
  { of: 12, code: 'R10', least: 8, most: 40 },
  { of: 4, code: 'R29', least: 2, most: 10 },
  { of: 40, code: 'change', least: 1, most: 3 },
] as const
const CHANGES = ['C01', 'C02', 'C03', 'C05', 'C06', 'C07', 'C04'] as const

export class BankWord {
  readonly #random: SeededRandom
  #answers: readonly Dated<DueAnswer>[] = []
  #items: readonly Dated<DueItem>[] = []

  constructor(random: SeededRandom) {
    this.#random = random
  }

  /** Decides what becomes of a file and of its debits, in an order that does not depend on how the file has them. */
  consider(file: ReadFile, debits: readonly Debit[], day: string): void {
    const { between, pick } = this.#random
    const isPrompt = between(1, 100) <= 70
    const answerDay = bankingDayAfter(day, isPrompt ? 1 : between(3, 8))
    const batches = [...new Set(file.entries.map(({ batch }) => batch))].filter(
      (number) =>
        !file.entries.some(({ batch, description }) => batch === number && description === ACCOUNT_CHECK),
    )
    const rejected = batches.length > 0 && between(1, 100) <= 8 ? [pick(batches)] : []
    this.#answers = [...this.#answers, { day: answerDay, file, rejected, isTyped: between(1, 3) === 1 }]
    const byTrace = new Map(file.entries.map((entry) => [entry.trace, entry]))
    for (const debit of debits) {
      const entry = byTrace.get(debit.presentments.at(-1)!.trace)!
      if (!rejected.includes(entry.batch)) this.#decide(debit, day)
    }
  }

  /** What it answers on a day. */
  answersOn(day: string): readonly DueAnswer[] {
    const due = this.#answers.filter((one) => one.day <= day)
    this.#answers = this.#answers.filter((one) => one.day > day)
    return due
  }

  /** Files that have batches which it has not answered to by 17:00 of the first day on which entries take effect. */
  owedAt(now: number): readonly string[] {
    const isLate = ({ entries }: ReadFile) => {
      const [first] = entries.map(({ entryDate }) => entryDate).sort()
      return atNewYork(first!, '17:00') <= now
    }
    return this.#answers.filter(({ file }) => isLate(file)).map(({ file }) => file.name)
  }

  /** What it reports on a day; of an account one change. */
  itemsOn(day: string): readonly DueItem[] {
    const corrected = new Set<BookAccount>()
    const due = this.#items.filter((one) => {
      if (one.day > day) return false
      if (one.change === null) return true
      const { account } = one.change
      return !corrected.has(account) && corrected.add(account)
    })
    this.#items = this.#items.filter((one) => !due.includes(one))
    return due
  }

  #decide(debit: Debit, day: string): void {
    const { between } = this.#random
    let roll = between(1, 1_000)
    const fate = FATES.find(({ of }) => {
      roll -= of
      return roll <= 0
    })
    if (!fate) return
    const on = bankingDayAfter(day, between(fate.least, fate.most))
    if (fate.code === 'change') this.#later(on, this.#changeOf(debit))
    else this.#giveBack(debit, fate.code, on)
  }

  #giveBack(debit: Debit, code: string, day: string): void {
    const { between } = this.#random
    const { trace } = debit.presentments.at(-1)!
    const back = (what: string, cents: number): DueItem => ({
      report: { code: what, originalTrace: trace, amountCents: cents },
      trace,
      cents,
      change: null,
    })
    this.#later(day, back(code, debit.cents))
    // once more, with another amount, and what no receiver says
    if (between(1, 4) === 1) this.#later(bankingDayAfter(day, between(1, 5)), back(code, debit.cents))
    if (between(1, 12) === 1) this.#later(day, back(code, debit.cents + 1))
    if (between(1, 25) === 1) this.#later(bankingDayAfter(day), back('R68', debit.cents))
  }

  #changeOf({ account, presentments }: Debit): DueItem {
    const { between, pick } = this.#random
    const { trace } = presentments.at(-1)!
    const code = pick(CHANGES)
    const right = {
      routing: pick(ROUTINGS),
      number: String(between(10 ** 9, 10 ** 10 - 1)),
      type: pick(['checking', 'savings'] as const),
    }
    const { routing, number, type } = right
    const typed = type === 'checking' ? '27' : '37'
    const { data, correction } = {
      C01: { data: number, correction: { number } },
      C02: { data: routing, correction: { routing } },
      C03: { data: `${routing}   ${number}`, correction: { routing, number } },
      C04: { data: 'Another Name LLC', correction: null },
      C05: { data: typed, correction: { type } },
      C06: { data: `${number.padEnd(17)}   ${typed}`, correction: { number, type } },
      C07: { data: `${routing}${number.padEnd(17)}${typed}`, correction: right },
    }[code]
    return {
      report: { code, originalTrace: trace, correctedData: data },
      trace,
      cents: 0,
      change: correction && { account, correction },
    }
  }

  #later(day: string, item: DueItem): void {
    this.#items = [...this.#items, { ...item, day }]
  }
}
