import {
  addEntries,
  type DraftEntry,
  type FinishedFile,
  finishFile,
  type Limits,
  newDraft,
  type Originator,
} from '../../domain/banking/files/nacha/draft.ts'

/** Who sends the files of the tests. */
export const ORIGINATOR: Originator = {
  destinationRouting: '021000021',
  destinationName: 'First Test Bank',
  originId: '1234567890',
  originName: 'Premium Collector',
  companyId: '1234567890',
  companyName: 'PREMIUM CO',
  odfi: '02100002',
  offset: null,
}
export const BALANCED: Originator = {
  ...ORIGINATOR,
  offset: { routing: '021000021', account: '55500011', accountType: 'checking' },
}

export const WRITTEN = { date: '2026-11-23', time: '1700', modifier: 'A' } as const

export function debitEntry(overrides: Partial<DraftEntry> = {}): DraftEntry {
  return {
    ...({ kind: 'debit', id: '65f0c0ffee0123456789abcd', amountCents: 12_345 } as const),
    ...({
      entryDate: '2026-11-24',
      routing: '011000015',
      account: '000123456789',
      fingerprint: 'f'.repeat(24),
    } as const),
    ...({ accountType: 'checking', name: 'Tidewater Joinery LLC' } as const),
    ...overrides,
  }
}

/** A file of entries that fit into one. */
export function fileOf(
  entries: readonly DraftEntry[],
  {
    originator = ORIGINATOR,
    limits,
    from = 1,
  }: { originator?: Originator; limits?: Limits; from?: number } = {},
): FinishedFile {
  const draft = newDraft(originator, limits)
  for (const entry of entries) if (!addEntries(draft, [entry])) throw new Error('The file is full')
  return finishFile(draft, WRITTEN, from)
}

/** What a bank sends back of one entry. */
export interface Reported {
  readonly code: string
  readonly originalTrace: string
  /** Cents; of a change 0. */
  readonly amountCents?: number
  readonly correctedData?: string
  readonly transactionCode?: number
}

interface ReportOptions {
  readonly destination?: string
  readonly origin?: string
  readonly companyId?: string
  /** Lines up to a whole block. */
  readonly filled?: boolean
}

const pad = (value: string | number, width: number) => String(value).padStart(width, '0')

/** A file of returns and changes as banks send them: a batch for each item, its entry and its addenda record. */
export function reportFile(
  items: readonly Reported[],
  {
    destination = '1234567890',
    origin = '021000021',
    companyId = '1234567890',
    filled = true,
  }: ReportOptions = {},
): string {
  const lines = [
    `101${destination.padStart(10)}${origin.padStart(10)}2611241030A094101${'OUR COMPANY'.padEnd(23)}${'FIRST TEST BANK'.padEnd(31)}`,
  ]
  let debits = 0
  let credits = 0
  for (const [index, item] of items.entries()) {
    const isChange = item.code.startsWith('C')
    const amount = isChange ? 0 : (item.amountCents ?? 12_345)
    const code = item.transactionCode ?? (isChange ? 21 : 26)
    const [debit, credit] = code % 10 >= 5 ? [amount, 0] : [0, amount]
    debits += debit
    credits += credit
    const company = companyId.padEnd(10)
    const number = pad(index + 1, 7)
    const trace = `01100001${pad(index + 1, 7)}`
    lines.push(
      `5200${'PREMIUM CO'.padEnd(36)}${company}${isChange ? 'COR' : 'CCD'}${'PREMIUM'.padEnd(10)}      261124   101100001${number}`,
      `6${code}021000021${'000123456789'.padEnd(17)}${pad(amount, 10)}${'65f0c0ffee01234'.padEnd(15)}${'Tidewater Joinery LLC'.padEnd(22)}  1${trace}`,
      isChange
        ? `798${item.code}${item.originalTrace}      01100001${(item.correctedData ?? '').padEnd(29)}${' '.repeat(15)}${trace}`
        : `799${item.code}${item.originalTrace}      01100001${' '.repeat(44)}${trace}`,
      `8200${pad(2, 6)}${pad('02100002', 10)}${pad(debit, 12)}${pad(credit, 12)}${company}${' '.repeat(25)}01100001${number}`,
    )
  }
  const records = lines.length + 1
  const hash = pad(String((BigInt(items.length) * 2_100_002n) % 10_000_000_000n), 10)
  lines.push(
    `9${pad(items.length, 6)}${pad(Math.ceil(records / 10), 6)}${pad(2 * items.length, 8)}${hash}${pad(debits, 12)}${pad(credits, 12)}${' '.repeat(39)}`,
  )
  while (filled && lines.length % 10 !== 0) lines.push('9'.repeat(94))
  return `${lines.join('\n')}\n`
}

/** Answers to files in our own format. */
export function answersFile(answers: readonly object[], bank = '021000021'): string {
  return [
    { format: 'compstream.bank-answers', version: 1, bank },
    ...answers,
    { end: true, answers: answers.length },
  ]
    .map((line) => `${JSON.stringify(line)}\n`)
    .join('')
}
