import { describe, expect, test } from 'vitest'
import { resource, rows } from '../../../interfaces/cli/output.ts'

test('an object that is too long for a line has a line for each field, whatever lies in it', () => {
  const tables = ['payroll_files', 'payroll_row_errors'].map((table) => ({
    table,
    equal: true,
    live: { rows: 26, hash: '-8347545568523126025:-43434922614320837275' },
    shadow: { rows: 26, hash: '-8347545568523126025:-43434922614320837275' },
  }))
  const rebuild = { generation: 4, failure: null, comparison: { equal: true, position: 173, tables } }
  const { text } = resource({ name: 'payroll-files', lag: { events: 0, seconds: 0 }, rebuild })
  expect(text).toContain('events: 0, seconds: 0')
  expect(text).toContain('rows: 26, hash: -8347545568523126025:-43434922614320837275')
  expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThan(130)
})

// the library measures all of a cell for each of its lines
test('a line of a cell is a row of the table, and one of 500 characters at the most', () => {
  const text = rows([{ one: 'first\nsecond', other: 'beside' }], { One: 'one', Other: 'other' }, 'things')
  expect(text.split('\n').slice(1, -1)).toEqual([
    '│ One    │ Other  │',
    '│ first  │ beside │',
    '│ second │        │',
  ])
  const long = resource({ long: 'y'.repeat(1_200) }).text.match(/y+/g)
  expect(long?.map(({ length }) => length)).toEqual([500, 500, 200])
})

describe('on a terminal that is too narrow', () => {
  const debit = { id: '65f0c0ffee0123456789abcd', status: 'pending', note: 'n'.repeat(200) }
  const columns = { id: 'id', status: 'status', note: 'note' }

  test.for([80, 60, 50])(
    'the widest columns of a list are cut: no line has more than %d characters',
    (width) => {
      const lines = rows([debit, { ...debit, note: 'short' }], columns, 'debits', width).split('\n')
      expect(Math.max(...lines.map(({ length }) => length))).toBeOneOf([width - 1, width])
      expect(lines[2]).toMatch(/│ 65f0c0[0-9a-f]*…? *│ pending │ n+… │$/)
    },
  )

  test('no column is cut where all fit, or nobody reads along', () => {
    expect(rows([debit], columns, 'debits', 300)).toContain(debit.note)
    expect(rows([debit], columns, 'debits')).toContain(debit.note)
  })

  test('a resource loses nothing: a text goes on in the next line, a secret stands in one piece to be copied', () => {
    const { text } = resource({ note: 'n '.repeat(100), client_secret: 's'.repeat(100) }, 60)
    const isOf = (letter: string) => (line: string) =>
      line.includes(letter.repeat(2)) || line.includes(`${letter} ${letter}`)
    const notes = text.split('\n').filter(isOf('n'))
    expect([notes.length > 3, Math.max(...notes.map(({ length }) => length))]).toEqual([
      true,
      expect.any(Number),
    ])
    expect(text).toContain('s'.repeat(100))
  })
})

test('an empty list says of what', () => {
  expect(rows([], { id: 'id' }, 'bank files')).toBe('No bank files')
})
