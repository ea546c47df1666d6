import { expect, test } from 'vitest'
import type { RecordedEvent } from '../../../application/commands/event-registry.ts'
import {
  payrollPipeline,
  UPLOAD_TIMEOUT_MS,
} from '../../../application/payroll/payroll-pipeline-process-manager.ts'
import { type PayrollFileEvent, PayrollFileFailed } from '../../../domain/payroll/payroll-file-events.ts'
import { newId, recorded, row } from '../../support/payroll.ts'

let by = 'test'
const RECORDED_AT = '2026-03-01T12:00:00.000Z'
// reacting is pure: whatever the work needs is not touched
const { on } = payrollPipeline({} as Parameters<typeof payrollPipeline>[0])

const id = newId()
const onlyRows = recorded(id, 0, true, [row()])
const firstRows = recorded(id, 0, false, [row()])
const lastRows = recorded(id, 1, true, [row({}, 2)])
const failed = PayrollFileFailed.of({ file_id: id, stage: 'file_creation', error: 'x' })

function intentsOf(...events: readonly PayrollFileEvent[]): readonly string[] {
  const page = events.map(
    (event, revision): RecordedEvent => ({
      position: BigInt(revision + 1),
      stream: `payrollFile-${id}`,
      revision,
      eventId: newId(),
      ...event,
      metadata: {
        tenant_id: null,
        environment: 'live',
        actor: { type: 'system', id: by },
        hash: '',
        correlation_id: 'c',
        causation_id: 'c',
        recorded_at: RECORDED_AT,
        schema_version: 1,
      },
    }),
  )
  const byKind = new Map<string, string>()
  for (const event of page) {
    for (const intent of on.find(({ type }) => type.name === event.type)!.react(event, undefined as never)) {
      expect(intent.key).toBe(id)
      const wait =
        intent.intent === 'perform' && intent.dueAt ? ` in ${intent.dueAt - Date.parse(RECORDED_AT)} ms` : ''
      byKind.delete(intent.kind)
      byKind.set(intent.kind, `${intent.intent} ${intent.kind}${wait}`)
    }
  }
  return [...byKind.values()]
}

const TIMER = `perform abandoned-upload in ${UPLOAD_TIMEOUT_MS} ms`

test('a file whose rows are still to come gets a timer', () => {
  expect(UPLOAD_TIMEOUT_MS).toBe(60_000)
  expect(intentsOf(firstRows)).toEqual([TIMER])
})

test('the last rows set the timer off and the processing going', () => {
  expect(intentsOf(lastRows)).toEqual(['cancel abandoned-upload', 'perform process-file'])
  expect(intentsOf(firstRows, lastRows)).toEqual(['cancel abandoned-upload', 'perform process-file'])
})

test('a file of one chunk needs no timer', () => {
  expect(intentsOf(onlyRows)).toEqual(['perform process-file'])
})

test('only what may leave work behind is followed', () => {
  expect(on.map(({ type }) => type.name)).toEqual(['PayrollRowsRecorded', 'PayrollFileFailed'])
})

test('a failed upload leaves no timer behind', () => {
  expect(intentsOf(firstRows, failed)).toEqual(['cancel abandoned-upload', 'cancel process-file'])
})

test('what the pipeline itself stored ends none of its work', () => {
  by = 'payroll-pipeline'
  expect(intentsOf(failed)).toEqual([])
})
