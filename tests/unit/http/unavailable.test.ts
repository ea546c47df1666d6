import { describe, expect, it } from 'vitest'
import { EventLogUnavailable, WrongExpectedRevision } from '../../../application/ports/event-log.ts'
import { ReadModelsLate } from '../../../application/ports/read-models.ts'
import { ServiceUnavailable } from '../../../application/ports/unavailable.ts'
import { DatabaseUnavailable, orUnavailable } from '../../../infrastructure/database/connection.ts'
import { unavailability } from '../../../interfaces/http/unavailable.ts'

/** As the database's adapters throw it. */
const thrown = (error: Error) => orUnavailable('10.0.0.7:5432/x', error)
const coded = (code: string) => Object.assign(new Error('secret host 10.0.0.7'), { code })

describe('a failure that passes by itself', () => {
  it.each([
    ['the log is away', new EventLogUnavailable('EventStoreDB at 10.0.0.7: gone', { passes: true })],
    ['the database is away', new DatabaseUnavailable('10.0.0.7:5432/x', 'gone')],
    ['a refused connection', thrown(coded('ECONNREFUSED'))],
    ['a reset connection', thrown(coded('ECONNRESET'))],
    ['an ended session', thrown(coded('57P01'))],
    ['a lost connection', thrown(coded('08006'))],
    ['no connection left', thrown(coded('53300'))],
    ['a connection that ended without a code', thrown(new Error('Connection terminated unexpectedly'))],
    ['a pool without an answer', thrown(new Error('timeout exceeded when trying to connect'))],
    ['a statement whose time is up', thrown(coded('57014'))],
    ['a full disk', thrown(coded('53100'))],
    ['a standby', thrown(coded('25006'))],
    ['a refused session', thrown(coded('28000'))],
    [
      'one that another error is about',
      new Error('projection store', { cause: thrown(coded('ECONNREFUSED')) }),
    ],
  ])('is told from others: %s', (_name, error) => {
    expect(unavailability(error)).toEqual({
      retryAfter: 2,
      message: expect.not.stringMatching(/10\.0\.0\.7/),
      because: expect.any(ServiceUnavailable),
    })
  })

  it('promises nothing where a person has to mend something', () => {
    const refused = new EventLogUnavailable('EventStoreDB at 10.0.0.7: access is denied', { passes: false })
    const { retryAfter, message } = unavailability(refused)!
    expect(retryAfter).toBeGreaterThan(30)
    expect(message).not.toMatch(/try again|10\.0\.0\.7/)
  })

  it('says of what others are changing all the time that it may be tried again', () => {
    expect(unavailability(new WrongExpectedRevision('policy-1', 18))).toEqual({
      retryAfter: 1,
      message: expect.stringMatching(/try again/),
      because: expect.any(WrongExpectedRevision),
    })
  })

  it('says of read models that are late what to do', () => {
    expect(unavailability(new ReadModelsLate())).toEqual({
      retryAfter: 5,
      message: expect.stringMatching(/ask again/),
      because: expect.any(ReadModelsLate),
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
    expect(unavailability(thrown(error as Error))).toBeNull()
  })
})
