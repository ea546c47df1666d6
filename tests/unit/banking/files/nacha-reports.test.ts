import { describe, expect, test } from 'vitest'
import {
  disablesAccount,
  isReturnOfReceiver,
  mayBeRepresented,
  RETURN_CODES,
} from '../../../../domain/banking/debits/return-codes.ts'
import { readAnswers } from '../../../../domain/banking/files/nacha/answers.ts'
import { NachaFault } from '../../../../domain/banking/files/nacha/read.ts'
import { notificationOfChange, readReport } from '../../../../domain/banking/files/nacha/report.ts'
import { answersFile, reportFile } from '../../../support/nacha-files.ts'

const TRACE = '021000020000001'
const returned = { code: 'R01', originalTrace: TRACE, amountCents: 500 }
const corrected = { code: 'C01', originalTrace: TRACE, correctedData: '1918171614' }

describe('a file of reports', () => {
  test('tells of returns and changes', () => {
    const { headers, items } = readReport(
      reportFile([returned, corrected, { ...returned, transactionCode: 21 }]),
    )
    expect(headers).toMatchObject([{ line: 1, origin: '021000021', destination: '1234567890' }])
    const common = { companyId: '1234567890', originalTrace: TRACE }
    expect(items).toEqual([
      { ...common, kind: 'return', line: 3, code: 'R01', amountCents: 500, isDebit: true },
      { ...common, kind: 'change', line: 7, code: 'C01', correctedData: corrected.correctedData.padEnd(29) },
      { ...common, kind: 'return', line: 11, code: 'R01', amountCents: 500, isDebit: false },
    ])
  })

  const text = reportFile([returned])
  const padded = (filling: string) => text.replaceAll('\n', `${filling}\n`)
  const joined = (form: string) => form.replaceAll('\n', '')
  test.each<readonly [string, string]>([
    ['no line breaks', joined(text)],
    ['no line breaks, and a mark of its end', `${joined(text)}\x1a`],
    ['no line breaks, and records of 100 characters', joined(padded(' '.repeat(6)))],
    [
      'no line breaks, and records of 128 characters, but for blanks at its end',
      joined(padded(' '.repeat(34))).trimEnd(),
    ],
    ['no line breaks, and zero bytes behind each record', joined(padded('\0\0'))],
    ['no line breaks, and blanks up to a block at its end', joined(text) + ' '.repeat(1_000)],
    ['CR and LF', text.replaceAll('\n', '\r\n')],
    ['CR alone', text.replaceAll('\n', '\r')],
    ['CR twice and LF', text.replaceAll('\n', '\r\r\n')],
    ['no blanks at the ends of lines', text.replace(/ +$/gm, '')],
    ['blanks beyond the last column', padded('      ')],
    ['a tab beyond the last column', padded('\t')],
    ['zero bytes beyond the last column', padded('\0\0')],
    ['no filling', reportFile([returned], { filled: false })],
    ['more filling than a block', `${text}${'9'.repeat(94)}\n`],
    [
      'a block of filling more, which it counts',
      text.replace('9000001000001', '9000001000002') + `${'9'.repeat(94)}\n`.repeat(10),
    ],
    ['filling that is short', text.replaceAll('9'.repeat(94), '9'.repeat(80))],
    ['blank lines at its end', `${text}\r\n  \r\n`],
    ['a blank line at its beginning', `\r\n${text}`],
    ['a form feed at its end', `${text}\f`],
    ...['\x1a', '\x1a\x1a\r\n', '\r\n\x1a\x1a', '\r\n  \r\n\x1a \r\n'].map(
      (end) => [JSON.stringify(end), text.trimEnd() + end] as const,
    ),
    ['blanks for the zeros before an amount', text.replace(/(\d{9}.{17})0000000500/, '$1       500')],
    ['a blank for the zero before a trace number', text.replace(`R01${TRACE}`, `R01 ${TRACE.slice(1)}`)],
    ['blanks for the zeros within a trace number', text.replace(`R01${TRACE}`, 'R0102100002      1')],
    ['a code in small letters', text.replace('799R01', '799r01')],
    ['no trace number of its own', text.replaceAll('011000010000001\n', `${' '.repeat(15)}\n`)],
    ['an entry that says nothing of its addenda', text.replace('  1011000010000001', '  0011000010000001')],
    [
      'another service class, company and batch number in its control',
      text.replace(/^8200(.{40})1234567890(.*)0000001$/m, '8225$1          $20000009'),
    ],
  ])('may have %s', (_what, form) => {
    expect(form).not.toBe(text)
    expect(readReport(form).items.map(({ line: _line, ...item }) => item)).toEqual(
      readReport(text).items.map(({ line: _line, ...item }) => item),
    )
  })

  test.each([
    ['one behind the other', text + text],
    ['with marks of their ends', `${text}\x1a\n${text}\x1a`],
    ['that were joined with the marks of their encoding', `${text}\ufeff${text}`],
    ['without line breaks', joined(text + text)],
    ['without filling', reportFile([returned], { filled: false }).repeat(2)],
  ])('may be several %s', (_what, form) => {
    const { headers, items } = readReport(form)
    expect(headers).toMatchObject([{ origin: '021000021' }, { origin: '021000021' }])
    expect(items).toMatchObject([{ code: 'R01' }, { code: 'R01' }])
  })

  const withAddenda = (...texts: readonly string[]) => {
    const count = String(1 + texts.length).padStart(6, '0')
    const [head, batch, entry, back, control, end] = text.split('\n') as [string, ...string[]]
    const addenda = texts.map((one) => (one === '99' ? back! : one.padEnd(94)))
    const counted = [
      control!.replace(/^8200000002/, `8200${count}`),
      end!.replace(/^(9000001000001)00000002/, `$100${count}`),
    ]
    return [head, batch, entry, ...addenda, ...counted].join('\n')
  }
  const remittance =
    '705INVOICE 17                                                                      00010000001'
  test.each([
    ['before it', [remittance, '99']],
    ['behind it', ['99', remittance]],
    ['around it', [remittance, remittance, '99', remittance]],
  ])('a return counts with other addenda %s', (_where, addenda) => {
    expect(readReport(withAddenda(...addenda)).items).toMatchObject([
      { kind: 'return', line: 3, code: 'R01', originalTrace: TRACE, amountCents: 500 },
    ])
  })

  test('with a batch without entries is nothing to look at', () => {
    const empty = [
      reportFile([]).split('\n')[0]!,
      '5200PREMIUM CO                          1234567890CCDPREMIUM         261124   1011000010000001',
      `82000000000000000000${'0'.repeat(24)}1234567890${' '.repeat(25)}011000010000001`,
      `9000001000001${'0'.repeat(42)}`,
    ].join('\n')
    expect(readReport(empty).items).toEqual([])
  })

  const good = { kind: 'return', code: 'R03', originalTrace: '021000020000002' } as const
  const two = reportFile([returned, { ...good, amountCents: 700 }])
  test.each<readonly [string, string, object]>([
    ['a code that is none', two.replace('799R01', '799RX1'), { code: null, originalTrace: TRACE }],
    [
      'a trace that is none',
      two.replace(`R01${TRACE}`, `R01${' '.repeat(15)}`),
      { code: 'R01', originalTrace: null },
    ],
    [
      'a trace that ends with a blank',
      two.replace(`R01${TRACE}`, 'R0121000020000001 '),
      { originalTrace: null },
    ],
    [
      'more than its columns hold',
      two.replace('Tidewater Joinery LLC ', 'Tidewater Joinery & Co LLC'),
      { code: 'R01' },
    ],
  ])('an item with %s is unreadable, and keeps no other from being read', (_what, form, shown) => {
    expect(form).not.toBe(two)
    expect(readReport(form).items).toMatchObject([
      { kind: 'unreadable', of: 'return', line: 3, amountCents: 500, ...shown },
      good,
    ])
  })

  test('an item with two addenda records of returns, or a change with an amount, is unreadable', () => {
    expect(readReport(withAddenda('99', '99')).items).toMatchObject([{ kind: 'unreadable', of: 'return' }])
    const change = text.replace('799R01', '798C01')
    expect(readReport(change).items).toMatchObject([{ kind: 'unreadable', of: 'change', amountCents: 500 }])
  })

  // the shapes of the samples that moov-io/ach publishes: a return of web debits in one block without filling, a change
  // whose addenda record has a trace number of its own, and returns whose entries keep the code of the entry sent
  test('as others publish them is read', () => {
    const web = [
      '101 091400606 6910001341810170306A094101FIRST BANK             ORIGINATOR                     ',
      '5200COINS                               123456789 WEBTRANSFER        000101   1091000010000001',
      '626091400606123456789        0000012354A1B2C3         Paul Jones            S 1091000017611242',
      '799R01091400600000001      09100001                                            091000017611242',
      '82000000020009140060000000012354000000000000 123456789                         091000010000001',
      '5200COINS                               123456789 WEBTRANSFER        000101   1021000020000002',
      '622091400606867530999999     0000004565D4E5F6         Bob Marley            S 1021000029461242',
      '799R03091400600000003      02100002                                            021000029461242',
      '82000000020009140060000000000000000000004565 123456789                         021000020000002',
      '9000002000001000000040018280120000000012354000000004565',
    ].join('\n')
    expect(readReport(web).items).toMatchObject([
      { kind: 'return', code: 'R01', originalTrace: '091400600000001', amountCents: 12_354, isDebit: true },
      { kind: 'return', code: 'R03', originalTrace: '091400600000003', amountCents: 4_565, isDebit: false },
    ])
    const change = [
      '101 231380104 1210428822102251048A094101Reserve Bank           Our Bank                       ',
      '5220Your Company                        121042882 CORVendor Pay      000000   1121042880000001',
      '621231380104744-5678-99      0000000000location #23   Best Co. #23          S 1121042880000001',
      '798C01121042880000001      121042881918171614                                  091012980000088',
      '82200000020023138010000000000000000000000000121042882                          121042880000001',
      '9000001000001000000020023138010000000000000000000000000                                       ',
    ].join('\n')
    expect(readReport(change).items).toMatchObject([{ kind: 'change', code: 'C01', line: 3 }])
  })

  const whole = reportFile([returned, corrected])
  const lines = whole.trimEnd().split('\n')
  test.each<readonly [string, string, string]>([
    ['that is empty', '', 'the file is empty'],
    ['that was cut short', lines.slice(0, 8).join('\n'), 'the file ends where'],
    ['that was cut within a record', whole.replaceAll('\n', '').slice(0, 500), 'it was cut short'],
    ['with another that was cut short', whole + lines.slice(0, 8).join('\n'), 'the file ends where'],
    ['with something else behind it', `${whole}PK`, 'this should be filling, or the header of another file'],
    ['with a control too many', `${whole}${lines[9]}`, 'another file control follows'],
    ['with another count', whole.replace(/^9(.{19})4/m, '9$15'), 'entries and addenda'],
    ['with another hash', whole.replace(/^8(.{18})2/m, '8$13'), 'entry hash'],
    ['with an amount that is none', whole.replace('0000000500', '0000000 00'), 'columns 30 to 39'],
    ['with other blocks', whole.replace('9000002000001', '9000002000003'), 'blocks'],
    ['with such a mark elsewhere', whole.replace('\n', '\x1a\n'), 'line 1: the record has 95 characters'],
    [
      'whose records were reordered',
      [lines[0], lines[2], lines[1], ...lines.slice(3)].join('\n'),
      'line 2: this should be',
    ],
    ['with another amount', whole.replace('0000000500', '0000000501'), 'total of debits'],
    ['that is something else', 'PK\u0003\u0004', 'this should be a file header'],
  ])('%s is refused, and says where', (_what, text, message) => {
    expect(() => readReport(text)).toThrow(NachaFault)
    expect(() => readReport(text)).toThrow(message)
  })
})

describe('a correction', () => {
  const none = { routingNumber: null, accountNumber: null, accountType: null }
  test.each([
    ['C01', '1918171614', { ...none, accountNumber: '1918171614' }],
    ['C02', '091000019', { ...none, routingNumber: '091000019' }],
    [
      'C03',
      '091000019   12345678901234567',
      { ...none, routingNumber: '091000019', accountNumber: '12345678901234567' },
    ],
    ['C05', '37', { ...none, accountType: 'savings' }],
    ['C06', '1918171614          27', { ...none, accountNumber: '1918171614', accountType: 'checking' }],
    [
      ...['C07', '0910000191918171614       32'],
      { routingNumber: '091000019', accountNumber: '1918171614', accountType: 'savings' },
    ],
    ['C01', 'NONE OF THESE', null],
    ['C02', '0910000', null],
    ['C03', '091000019', null],
    ['C04', 'TIDEWATER JOINERY', null],
    ['C05', '77', null],
    ['C61', '1918171614', null],
  ] as const)('%s %s', (code, data, correction) => {
    expect(notificationOfChange(code, data)).toEqual(correction)
  })
})

describe('codes of returns', () => {
  test('the groups whose rates are watched, and what follows from a code', () => {
    const inGroup = (wanted: string) =>
      Object.entries(RETURN_CODES)
        .filter(([, { group }]) => group === wanted)
        .map(([code]) => code)
    expect(inGroup('unauthorized')).toEqual(['R05', 'R07', 'R10', 'R11', 'R29', 'R51'])
    expect(inGroup('administrative')).toEqual(['R02', 'R03', 'R04'])
    expect(Object.keys(RETURN_CODES).filter(mayBeRepresented)).toEqual(['R01', 'R09'])
    expect(['R02', 'R16', 'R29'].every(disablesAccount)).toBe(true)
    expect(['R01', 'R08', 'R09', 'R79'].some(disablesAccount)).toBe(false)
    expect(['R01', 'R31', 'R60', 'R78', 'R85'].every(isReturnOfReceiver)).toBe(true)
    const disputes = Object.keys(RETURN_CODES).filter((code) => RETURN_CODES[code]?.by !== 'receiver')
    expect([...disputes, 'R61', 'R63', 'R77'].some(isReturnOfReceiver)).toBe(false)
  })
})

describe('answers', () => {
  const answers = [
    { file: '20261123-A-1.ach', outcome: 'accepted' },
    { file: '20261123-B-2.ach', batch: 2, outcome: 'rejected', reason: 'unknown company' },
  ]

  test('are read with their lines', () => {
    expect(readAnswers(answersFile(answers))).toEqual({
      bank: '021000021',
      answers: [
        { line: 2, file: '20261123-A-1.ach', sha256: null, batch: null, outcome: 'accepted', reason: null },
        {
          line: 3,
          file: '20261123-B-2.ach',
          sha256: null,
          batch: 2,
          outcome: 'rejected',
          reason: 'unknown company',
        },
      ],
    })
  })

  const text = answersFile(answers)
  test.each(['\x1a', '\r\n\x1a\x1a', '\r\n \r\n'])('may end with %j', (end) => {
    expect(readAnswers(text.trimEnd() + end)).toEqual(readAnswers(text))
  })
  test.each([
    ['cut short', text.split('\n').slice(0, 2).join('\n'), 'line 2: this should be the end'],
    ['cut within a line', text.slice(0, 100), 'line 2: the line is no JSON'],
    [
      'counted wrongly',
      text.replace('"answers":2', '"answers":3'),
      'line 4: the end counts 3 answers, there are 2',
    ],
    ['in another format', text.replace('bank-answers', 'answers'), 'line 1: this should be the beginning'],
    [
      'with an outcome that is none',
      text.replace('accepted', 'maybe'),
      'line 2: this should be an answer: outcome',
    ],
    ['twice in one', text + text, 'line 4: this should be an answer'],
  ])('that are %s are refused', (_what, bad, message) => {
    expect(() => readAnswers(bad)).toThrow(message)
  })
})
