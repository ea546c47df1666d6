import { parse, validate } from 'achkit'
import { describe, expect, test } from 'vitest'
import { transliterated, writtenName } from '../../../../domain/banking/files/nacha/characters.ts'
import { checkForward } from '../../../../domain/banking/files/nacha/check.ts'
import { addEntries, newDraft } from '../../../../domain/banking/files/nacha/draft.ts'
import { NachaFault } from '../../../../domain/banking/files/nacha/read.ts'
import { MAX_ENTRY_CENTS, traceNumber } from '../../../../domain/banking/files/nacha/records.ts'
import { BALANCED, debitEntry, fileOf, ORIGINATOR } from '../../../support/nacha-files.ts'

const linesOf = (...given: Parameters<typeof fileOf>) => [...fileOf(...given).lines()]

describe('a file', () => {
  test('of two debits, record by record', () => {
    const lines = linesOf([
      debitEntry(),
      debitEntry({ accountType: 'savings', amountCents: MAX_ENTRY_CENTS, routing: '091000019' }),
    ])
    expect(lines.slice(0, 6)).toEqual([
      '101 02100002112345678902611231700A094101First Test Bank        Premium Collector              ',
      '5225PREMIUM CO                          1234567890CCDPREMIUM         261124   1021000020000001',
      '627011000015000123456789     000001234565f0c0ffee01234Tidewater Joinery LLC   0021000020000001',
      '637091000019000123456789     999999999965f0c0ffee01234Tidewater Joinery LLC   0021000020000002',
      '82250000020010200002010000012344000000000000'.concat('1234567890', ' '.repeat(25), '021000020000001'),
      '9000001000001000000020010200002010000012344000000000000                                       ',
    ])
    expect(lines).toHaveLength(10)
    expect(new Set(lines.slice(6))).toEqual(new Set(['9'.repeat(94)]))
  })

  test('has a batch for each description and date, and traces that ascend through all of it', () => {
    const file = fileOf(
      [
        debitEntry({ entryDate: '2026-11-27' }),
        debitEntry({ kind: 'retry' }),
        debitEntry({ kind: 'micro-deposit', amountCents: 12 }),
        debitEntry(),
        debitEntry({ kind: 'micro-deposit', amountCents: 34, accountType: 'savings' }),
      ],
      { from: 100 },
    )
    expect(
      file.batches.map(({ description, entryDate, serviceClass, firstSequence, ids }) => [
        ...[description, entryDate, serviceClass, firstSequence, ids.length],
      ]),
    ).toEqual([
      ['ACCTVERIFY', '2026-11-24', 220, 100, 2],
      ['PREMIUM', '2026-11-24', 225, 102, 1],
      ['RETRY PYMT', '2026-11-24', 225, 103, 1],
      ['PREMIUM', '2026-11-27', 225, 104, 1],
    ])
    const codes = [...file.lines()].filter((line) => line.startsWith('6')).map((line) => line.slice(1, 3))
    expect(codes).toEqual(['22', '32', '27', '27', '27'])
    checkForward(file.lines())
  })

  test('that is balanced credits what it debits, in as many entries as that takes', () => {
    const file = fileOf([debitEntry({ amountCents: MAX_ENTRY_CENTS }), debitEntry({ amountCents: 5 })], {
      originator: BALANCED,
    })
    expect(file.totals).toMatchObject({
      entries: 4,
      debitCents: MAX_ENTRY_CENTS + 5,
      creditCents: MAX_ENTRY_CENTS + 5,
    })
    expect(file.batches[0]).toMatchObject({ serviceClass: 200, ids: { length: 2 } })
    checkForward(file.lines())
    expect(validate([...file.lines()].join('\n'))).toEqual({ ok: true, errors: [] })
  })

  test('is taken by another reader, which finds the same in it', () => {
    const text = linesOf([debitEntry(), debitEntry({ amountCents: 1 }), debitEntry({ kind: 'retry' })]).join(
      '\n',
    )
    expect(validate(text)).toEqual({ ok: true, errors: [] })
    const { batches, control } = parse(text)
    expect(
      batches.map(({ sec, serviceClass, description, effectiveDate, entries }) => [
        ...[sec, serviceClass, description, effectiveDate, entries.length],
      ]),
    ).toEqual([
      ['CCD', 225, 'PREMIUM', '261124', 2],
      ['CCD', 225, 'RETRY PYMT', '261124', 1],
    ])
    expect(batches[0]!.entries[0]).toMatchObject({
      txnCode: 27,
      routing: '011000015',
      account: '000123456789',
      amountCents: 12_345,
      name: 'Tidewater Joinery LLC',
      traceNumber: '021000020000001',
    })
    expect(control).toMatchObject({ batchCount: 2, blockCount: 1, entryAddendaCount: 3, totalDebit: 24_691 })
  })

  test('takes no more than its totals and counts can hold; the next one does', () => {
    const limits = { totalCents: 1_000, batchEntries: 3, fileEntries: 100 }
    const draft = newDraft(ORIGINATOR, limits)
    expect(addEntries(draft, [debitEntry({ amountCents: 600 })])).toBe(true)
    expect(addEntries(draft, [debitEntry({ amountCents: 401 })])).toBe(false)
    expect(addEntries(draft, [debitEntry({ amountCents: 400 })])).toBe(true)
    expect(addEntries(draft, [debitEntry({ amountCents: 1 })])).toBe(false)
    const few = newDraft(ORIGINATOR, { ...limits, batchEntries: 1 })
    expect([1, 1].map((amountCents) => addEntries(few, [debitEntry({ amountCents })]))).toEqual([true, false])
    expect(addEntries(few, [debitEntry({ kind: 'retry' })])).toBe(false)
  })

  test('shows the last ten digits of a hash that has more', () => {
    const lines = linesOf(Array.from({ length: 900 }, () => debitEntry({ routing: '121000248' })))
    const last = String(900 * 12_100_024).slice(-10)
    expect([lines[902]!.slice(10, 20), lines[903]!.slice(21, 31)]).toEqual([last, last])
    checkForward(lines)
  })

  test('holds nothing that does not fit its field', () => {
    const draft = newDraft(ORIGINATOR)
    expect(() => addEntries(draft, [debitEntry({ amountCents: MAX_ENTRY_CENTS + 1 })])).toThrow(RangeError)
    expect(() => addEntries(draft, [debitEntry({ name: 'Ærø' })])).toThrow(RangeError)
    expect(() => addEntries(draft, [debitEntry({ account: '1'.repeat(18) })])).toThrow(RangeError)
    expect(() => traceNumber('02100002', 10_000_000)).toThrow(RangeError)
  })
})

describe('the checker', () => {
  const good = linesOf([debitEntry(), debitEntry({ amountCents: 77 })], { originator: BALANCED })
  const changed = (line: number, from: number, text: string) =>
    good.map((one, index) =>
      index === line - 1 ? one.slice(0, from - 1) + text + one.slice(from - 1 + text.length) : one,
    )

  test.each<readonly [string, string[], string]>([
    [
      'a wrong hash, which is a routing number',
      changed(6, 11, '0000000001'),
      'line 6: entry hash: the control record says another one than the entries come to',
    ],
    ['a wrong total', changed(6, 21, '000000000001'), 'line 6: total of debits'],
    ['a wrong count', changed(7, 14, '00000009'), 'line 7: entries and addenda'],
    [
      'a trace that does not ascend',
      changed(4, 80, '021000020000001'),
      'line 4: the trace numbers do not ascend',
    ],
    ['a trace of another bank', changed(4, 80, '091000010000002'), 'line 4: the trace number is not of the'],
    [
      'another service class',
      changed(2, 2, '225').map((l, i) => (i === 5 ? `8225${l.slice(4)}` : l)),
      'line 2: the service class should be 200',
    ],
    ['an entry date on a holiday', changed(2, 70, '261126'), 'line 2: the entry date is no banking day'],
    ['an entry date on the day of the file', changed(2, 70, '261123'), 'line 2: the entry date is not after'],
    ['a wrong check digit', changed(3, 12, '6'), 'line 3: the check digit'],
    ['a transaction code of returns', changed(3, 2, '26'), 'line 3: the transaction code'],
    ['another batch number', changed(6, 88, '0000002'), 'line 6: batch number'],
    ['addenda that are announced', changed(3, 79, '1'), 'line 3: whether addenda follow'],
    ['a file that was cut short', good.slice(0, 5), 'the file ends where an entry or the batch control'],
    ['missing filling', good.slice(0, 7), 'the file does not end with a whole block'],
    ['a file twice', [...good, ...good], 'line 11: records follow the file control'],
    ['records in another order', [good[0]!, good[2]!, good[1]!, ...good.slice(3)], 'line 2: this should be'],
    [
      'a short record',
      good.map((line, index) => (index === 3 ? line.slice(1) : line)),
      'line 4: the record has 93',
    ],
  ])('finds %s', (_what, lines, message) => {
    checkForward(good)
    expect(() => checkForward(lines)).toThrow(NachaFault)
    expect(() => checkForward(lines)).toThrow(message)
  })
})

describe('names', () => {
  test.each([
    ['Łódź & Søn GmbH', 'Lodz & Son GmbH'],
    ['Café “Señor” – Straße', 'Cafe "Senor" - Strasse'],
    ['Ｗｉｄｅ Ｃo', 'Wide Co'],
    ['株式会社 Tidewater', 'Tidewater'],
    ['Tidewater Joinery and Cabinet Makers LLC', 'Tidewater Joinery and'],
  ])('%s is written %s', (name, written) => {
    expect(writtenName(name, 22)).toBe(written)
  })

  test('what cannot be written is nobody’s name', () => {
    expect(writtenName('株式会社', 22)).toBeNull()
    expect(writtenName('---', 22)).toBeNull()
    expect(transliterated('a\u0000b\n')).toBe('a b')
  })
})
