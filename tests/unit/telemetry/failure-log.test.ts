import { expect, test } from 'vitest'
import { EventLogUnavailable } from '../../../application/ports/event-log.ts'
import { DatabaseUnavailable } from '../../../infrastructure/database/connection.ts'
import { createLogger } from '../../../infrastructure/telemetry/logger.ts'
import { FailureLog } from '../../../interfaces/service/failure-log.ts'

function captured() {
  const lines: string[] = []
  const clock = { now: 0 }
  const log = new FailureLog(
    createLogger('info', { write: (line) => void lines.push(line) }),
    () => clock.now,
  )
  return {
    clock,
    fail: (error: Error, id = 'r-1') => log.report('core', { id, method: 'GET' }, error),
    shown: () =>
      lines.map((line) => {
        const { level, event, request_id, error } = JSON.parse(line)
        return [level, event, request_id, error.class].join(' ')
      }),
  }
}

const database = () => new DatabaseUnavailable('db:5432/x', 'it does not answer')
const log = () => new EventLogUnavailable('EventStoreDB: it does not answer', { passes: true })

test('each failure of the service is a line, also the same again', () => {
  const { fail, shown } = captured()
  fail(new TypeError('a defect'), 'r-1')
  fail(new TypeError('a defect'), 'r-2')
  expect(shown()).toEqual(['error request failed r-1 TypeError', 'error request failed r-2 TypeError'])
})

test('what is away is a line once a minute for each kind', () => {
  const { clock, fail, shown } = captured()
  fail(database(), 'r-1')
  fail(database(), 'r-2')
  fail(new Error('about another', { cause: database() }), 'r-3')
  fail(log(), 'r-4')
  clock.now = 59_999
  fail(database(), 'r-5')
  expect(shown()).toEqual([
    'warn request not served r-1 DatabaseUnavailable',
    'warn request not served r-4 EventLogUnavailable',
  ])
  clock.now = 60_000
  fail(database(), 'r-6')
  expect(shown()).toHaveLength(3)
  expect(shown().at(-1)).toBe('warn request not served r-6 DatabaseUnavailable')
})
