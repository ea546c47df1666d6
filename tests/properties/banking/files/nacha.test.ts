import { validate } from 'achkit'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isWritable, writtenName } from '../../../../domain/banking/files/nacha/characters.ts'
import { checkForward } from '../../../../domain/banking/files/nacha/check.ts'
import {
  addEntries,
  type DraftEntry,
  type FinishedFile,
  finishFile,
  newDraft,
  sequencesOf,
} from '../../../../domain/banking/files/nacha/draft.ts'
import { readParts } from '../../../../domain/banking/files/nacha/read.ts'
import { MAX_ENTRY_CENTS } from '../../../../domain/banking/files/nacha/records.ts'
import { readReport } from '../../../../domain/banking/files/nacha/report.ts'
import { runs } from '../../../support/generated.ts'
import { BALANCED, ORIGINATOR, reportFile, WRITTEN } from '../../../support/nacha-files.ts'

const routing = fc.integer({ min: 1_000_000, max: 12_999_999 }).map((eight) => {
  const digits = String(eight).padStart(8, '0')
  const sum = [...digits].reduce((total, digit, index) => total + Number(digit) * [3, 7, 1][index % 3]!, 0)
  return `${digits}${(10 - (sum % 10)) % 10}`
})
const entry: fc.Arbitrary<DraftEntry> = fc.record({
  kind: fc.constantFrom('debit', 'retry', 'micro-deposit'),
  id: fc.stringMatching(/^[0-9a-f]{24}$/),
  amountCents: fc.oneof(fc.integer({ min: 1, max: MAX_ENTRY_CENTS }), fc.constant(MAX_ENTRY_CENTS)),
  entryDate: fc.constantFrom('2026-11-24', '2026-11-25', '2026-11-27'),
  routing,
  account: fc.stringMatching(/^\d{5,17}$/),
  accountType: fc.constantFrom('checking', 'savings'),
  fingerprint: fc.constant('f'),
  name: fc.string({ unit: 'binary', minLength: 1 }).map((name) => writtenName(name, 22) ?? 'NAME'),
})

/** Entries in as many files as they take, as the writer of files does it. */
function filesOf(entries: readonly DraftEntry[], balanced: boolean, totalCents: number): FinishedFile[] {
  const originator = balanced ? BALANCED : ORIGINATOR
  const limits = { totalCents, batchEntries: 7, fileEntries: 25 }
  const drafts = [newDraft(originator, limits)]
  for (const one of entries) {
    if (addEntries(drafts.at(-1)!, [one])) continue
    drafts.push(newDraft(originator, limits))
    expect(addEntries(drafts.at(-1)!, [one])).toBe(true)
  }
  let next = 1
  return drafts.map((draft) => {
    const file = finishFile(draft, WRITTEN, next)
    expect(file.lastSequence - file.firstSequence + 1).toBe(sequencesOf(draft))
    next = file.lastSequence + 1
    return file
  })
}

test('whatever entries there are, each stands in one file, and every file passes both checkers', () => {
  fc.assert(
    fc.property(
      fc.array(entry, { minLength: 1, maxLength: 40 }),
      fc.boolean(),
      fc.integer({ min: 2 * MAX_ENTRY_CENTS, max: 999_999_999_999 }),
      (entries, balanced, totalCents) => {
        const files = filesOf(entries, balanced, totalCents)
        let cents = 0
        let before = ''
        for (const file of files) {
          const lines = [...file.lines()]
          checkForward(lines)
          expect(validate(lines.join('\n'))).toEqual({ ok: true, errors: [] })
          expect(file.totals.debitCents).toBeLessThanOrEqual(totalCents)
          if (balanced) expect(file.totals.debitCents).toBe(file.totals.creditCents)
          for (const part of readParts(lines)) {
            if (part.part !== 'entry') continue
            expect(part.trace > before).toBe(true)
            before = part.trace
            if (part.identification !== 'OFFSET') cents += part.amountCents
          }
        }
        expect(cents).toBe(entries.reduce((sum, { amountCents }) => sum + amountCents, 0))
        const ids = files.flatMap(({ batches }) => batches.flatMap((batch) => batch.ids))
        expect(ids.sort()).toEqual(entries.map(({ id }) => id).sort())
      },
    ),
    runs(20),
  )
})

test('a name is written in characters that a file can hold, or not at all', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (name) => {
      const written = writtenName(name, 22)
      if (written === null) return
      expect(isWritable(written)).toBe(true)
      expect(written.length).toBeLessThanOrEqual(22)
      expect(writtenName(written, 22)).toBe(written)
    }),
    runs(),
  )
})

test('a file of reports that lost or changed a character anywhere is refused, or tells the same money', () => {
  const traces = ['021000020000001', '021000020000002'] as const
  const text = reportFile([
    { code: 'R01', originalTrace: traces[0], amountCents: 500 },
    { code: 'R03', originalTrace: traces[1], amountCents: 12_345 },
  ])
  const moneyOf = (report: string) =>
    readReport(report).items.map((item) => ('amountCents' in item ? item.amountCents : null))
  const money = moneyOf(text)
  fc.assert(
    fc.property(
      fc.nat({ max: text.length - 1 }),
      fc.constantFrom('', '0', '7', ' ', 'X', '\n'),
      (at, put) => {
        let read: unknown
        try {
          read = moneyOf(text.slice(0, at) + put + text.slice(at + 1))
        } catch {
          return
        }
        expect(read).toEqual(money)
      },
    ),
    runs(),
  )
})
