import { expect, test } from 'vitest'
import type { RecordedEvent } from '../../application/event-store.ts'
import { payrollPipeline, UPLOAD_TIMEOUT_MS } from '../../application/process-managers/payroll-pipeline.ts'
import {
  type PayrollFileEvent,
  PayrollFileFailed,
  PayrollPremiumCalculated,
} from '../../domain/payroll/payroll-file.ts'
import { newId, recorded, row } from '../support/payroll.ts'

const RECORDED_AT = '2026-03-01T12:00:00.000Z'
// reacting is pure: whatever the work needs is not touched
const { react, handles } = payrollPipeline({} as Parameters<typeof payrollPipeline>[0])

const id = newId()
const firstRows = recorded(id, 0, false, [row()])
const lastRows = recorded(id, 1, true, [row({}, 2)])
const premium = (last: boolean) =>
  PayrollPremiumCalculated.of({
    ...{ file_id: id, chunk: last ? 1 : 0, last, rows_processed: 1, premium_cents: 1, premiums: [] },
  })
const failed = PayrollFileFailed.of({ file_id: id, stage: 'file_creation', error: 'x' })

function intentsOf(...events: readonly PayrollFileEvent[]): readonly string[] {
  const page = events.map(
    (event, revision): RecordedEvent => ({
      ...{
        position: BigInt(revision + 1),
        stream: `payrollFile-${id}`,
        revision,
        eventId: newId(),
        ...event,
      },
      metadata: {
        ...{ tenant_id: null, environment: 'live', actor: { type: 'system', id: 'test' }, hash: '' },
        ...{ correlation_id: 'c', causation_id: 'c', recorded_at: RECORDED_AT, schema_version: 1 },
      },
    }),
  )
  return react(page).map((intent) => {
    expect(intent.key).toBe(id)
    const wait =
      intent.intent === 'do' && intent.dueAt ? ` in ${intent.dueAt - Date.parse(RECORDED_AT)} ms` : ''
    return `${intent.intent} ${intent.kind}${wait}`
  })
}

const TIMER = `do abandoned-upload in ${UPLOAD_TIMEOUT_MS} ms`

test('a file whose rows are still to come gets a timer', () => {
  expect(UPLOAD_TIMEOUT_MS).toBe(60_000)
  expect(intentsOf(firstRows)).toEqual([TIMER])
})

test('the last rows set the timer off and the processing going', () => {
  expect(intentsOf(lastRows)).toEqual(['cancel abandoned-upload', 'do process-file'])
})

test('a file that came whole needs no timer', () => {
  expect(intentsOf(firstRows, lastRows)).toEqual(['do process-file'])
  expect(intentsOf(recorded(id, 0, true, [row()]))).toEqual(['do process-file'])
})

test('only what may leave work behind is followed', () => {
  expect(handles.map(({ name }) => name)).toEqual([
    'PayrollRowsRecorded',
    'PayrollPremiumCalculated',
    'PayrollFileFailed',
  ])
})

test('a file that came to rest within a page needs nothing', () => {
  expect(intentsOf(firstRows, lastRows, premium(false), premium(true))).toEqual([])
  expect(intentsOf(firstRows, lastRows, failed)).toEqual([])
  expect(intentsOf(firstRows, failed)).toEqual([])
  expect(intentsOf(firstRows, lastRows, premium(false))).toEqual(['do process-file'])
})

test('a failed upload leaves no timer behind', () => {
  expect(intentsOf(failed)).toEqual(['cancel abandoned-upload'])
})
