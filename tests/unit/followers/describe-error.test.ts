import { describe, expect, test } from 'vitest'
import { describeError } from '../../../application/followers/describe-error.ts'
import { WrongExpectedRevision } from '../../../application/ports/event-log.ts'
import { FoldError, ProjectionStoreError } from '../../../projections/runtime/failures.ts'

describe('an error in words that may be stored and shown', () => {
  test('is its message where that is known to hold no values', () => {
    const store = new ProjectionStoreError('data', 'SQLSTATE 22P05 (table accounts)')
    expect(describeError(store)).toBe('SQLSTATE 22P05 (table accounts)')
    expect(describeError(new FoldError('accounts has no column x'))).toBe('accounts has no column x')
    const conflict = new WrongExpectedRevision('a-1', 3)
    expect(describeError(conflict)).toBe(conflict.message)
  })

  test('is name, code and place of all others', () => {
    expect(describeError(new TypeError('Maria Silva'))).toMatch(/^TypeError at describe-error\.test\.ts:\d+$/)
    const refused = Object.assign(new Error('123-45-6789'), { code: '22P05' })
    expect(describeError(refused)).toMatch(/^Error 22P05 at describe-error\.test\.ts:\d+$/)
    expect(describeError('Maria Silva')).toBe('a value was thrown that is no error')
  })

  test.each([
    ['a message that looks like a place', new Error('born at 1980:01:02')],
    [
      'a message of lines that look like places',
      new Error('row\n    at /Maria/Silva.ts:1980:01\n    at 2:3:4'),
    ],
    ['a code with values', Object.assign(new Error('x'), { code: 'born 1980-01-02' })],
    ['a message that was changed', Object.assign(new Error('born at 1980:01:02'), { message: 'hidden' })],
  ])('tells nothing of %s', (_, error) => {
    expect(describeError(error)).not.toMatch(/1980|Silva|2:3/)
  })
})
