import { describe, expect, it } from 'vitest'
import { EventLogUnavailable } from '../../application/ports/event-log.ts'
import { ReadModelsLate } from '../../application/ports/read-models.ts'
import { DatabaseUnavailable } from '../../infrastructure/database/connection.ts'
import { unavailability } from '../../interfaces/http/unavailable.ts'

const coded = (code: string) => Object.assign(new Error('secret host 10.0.0.7'), { code })

describe('a failure that passes by itself', () => {
  it.each([
    ['the log is away', new EventLogUnavailable('EventStoreDB at 10.0.0.7: gone', { passes: true })],
    ['the database is away', new DatabaseUnavailable('10.0.0.7:5432/x', 'gone')],
    ['a refused connection', coded('ECONNREFUSED')],
    ['a reset connection', coded('ECONNRESET')],
    ['an ended session', coded('57P01')],
    ['a lost connection', coded('08006')],
    ['no connection left', coded('53300')],
    ['a connection that ended without a code', new Error('Connection terminated unexpectedly')],
    ['a pool without an answer', new Error('timeout exceeded when trying to connect')],
    ['one that another error is about', new Error('projection store', { cause: coded('ECONNREFUSED') })],
  ])('is told from others: %s', (_name, error) => {
    expect(unavailability(error)).toEqual({
      retryAfter: 2,
      message: expect.not.stringMatching(/10\.0\.0\.7/),
    })
  })

  it('says of read models that are late what to do', () => {
    expect(unavailability(new ReadModelsLate())).toEqual({
      retryAfter: 5,
      message: expect.stringMatching(/ask again/),
    })
  })
})

describe('any other failure', () => {
  it.each([
    ['of the program', new TypeError('x is not a function')],
    ['of a statement', coded('42P01')],
    ['of a value', coded('22P02')],
    ['of a file', coded('ENOENT')],
    ['of the HTTP library', coded('ERR_HTTP_HEADERS_SENT')],
    ['that is no error', 'ECONNREFUSED'],
  ])('stays one: %s', (_name, error) => {
    expect(unavailability(error)).toBeNull()
  })
})
