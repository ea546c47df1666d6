import { fold, streamOf } from '../../domain/kernel/decider.ts'
import { orThrow } from '../../domain/kernel/rejection.ts'
import {
  nextStep,
  type PayrollFile,
  type PayrollFileCommand,
  payrollFile,
} from '../../domain/payroll/payroll-file.ts'
import {
  type CalculatedWages,
  type PayrollFileEvent,
  PayrollFileFailed,
  PayrollRowsRecorded,
  type RecordedRows,
  rowsRevision,
  wagesRevision,
} from '../../domain/payroll/payroll-file-events.ts'
import type { PhaseTerms } from '../../domain/payroll/phases.ts'
import { policy } from '../../domain/policies/policy.ts'
import { activePrimaryAccount } from '../banking/debits/payroll-debits.ts'
import type { Application } from '../commands/application.ts'
import type { Loaded } from '../commands/command-handler.ts'
import type { RecordedEvent } from '../commands/event-registry.ts'
import { nextTurn } from '../commands/time-slices.ts'
import { describeError } from '../followers/describe-error.ts'
import {
  backoff,
  cancel,
  contextOf,
  on,
  perform,
  processManager,
  type WorkItem,
  type WorkOutcome,
  work,
} from '../followers/process-manager.ts'
import { EventLogUnavailable, WrongExpectedRevision } from '../ports/event-log.ts'
import { isAway } from '../ports/unavailable.ts'
import {
  type ChunkStep,
  phaseTerms,
  pipelineFault,
  premiumCommand,
  rowsCommand,
  stageOf,
} from './pipeline-steps.ts'

const PAYROLL_PIPELINE = 'payroll-pipeline'

/** How long the rows of a received file may take to arrive, in service-clock milliseconds. */
export const UPLOAD_TIMEOUT_MS = 60_000
/** Chunks that are read, worked on and stored together. */
const CHUNKS_AT_ONCE = 8
/** Bytes of what came out of them that are stored together; leaves room for metadata below the log's limit. */
const APPEND_BYTES = 800 * 1024
/** Tries after which a file that keeps hitting technical errors fails. */
const TRIES = 10
/** Real time after which a file that takes longer lets the next one have its slot, in milliseconds. */
const TURN_MS = 60_000

type Parts = Pick<Application, 'log' | 'registry' | 'commands' | 'faults'>

/**
 * Takes payroll files through their phases: rows recorded, normalized, validated, wages, premium.
 * Files that were processed when they were received leave no trace here; the others are worked on chunk
 * by chunk, and what their stream says is where work goes on after an interruption.
 */
export function payrollPipeline(parts: Parts) {
  return processManager({
    name: PAYROLL_PIPELINE,
    startAt: 'beginning',
    on: [
      on(PayrollRowsRecorded, ({ data, metadata }) => {
        const { file_id, chunk, last } = data
        // the first rows are stored together with the event that received the file
        const at = Date.parse(metadata.recorded_at) + UPLOAD_TIMEOUT_MS
        return [
          ...(chunk === 0 && !last ? [perform('abandoned-upload', file_id, {}, { at })] : []),
          ...(chunk > 0 && last ? [cancel('abandoned-upload', file_id)] : []),
          ...(last ? [perform('process-file', file_id, {})] : []),
        ]
      }),
      on(PayrollFileFailed, (event) => {
        if (isOwn(event)) return []
        const { file_id } = event.data
        return [cancel('abandoned-upload', file_id), cancel('process-file', file_id)]
      }),
    ],
    work: {
      'process-file': work({ retry: backoff(TRIES), timeLimitMs: 5 * TURN_MS }, (item) =>
        processFile(parts, item),
      ),
      'abandoned-upload': work({ timeLimitMs: TURN_MS }, (item) => failAbandonedUpload(parts, item)),
    },
  })
}

/** What the pipeline itself brought about needs no reaction: the work that did so ends with it. */
function isOwn({ metadata }: Pick<RecordedEvent, 'metadata'>): boolean {
  return metadata.actor.type === 'system' && metadata.actor.id === PAYROLL_PIPELINE
}

// ---- working

/** Fails a file whose rows did not all arrive; whichever of the last row and this comes first, wins. */
async function failAbandonedUpload(parts: Parts, item: WorkItem): Promise<WorkOutcome> {
  for (;;) {
    const file = await parts.commands.load(payrollFile, item.key)
    if (nextStep(file.state).step !== 'record_rows' || !file.state.received) return { outcome: 'done' }
    try {
      await fail(parts, item, file, 'The upload was interrupted before all rows were stored')
      return { outcome: 'done' }
    } catch (error) {
      if (!(error instanceof WrongExpectedRevision)) throw error
    }
  }
}

async function processFile(parts: Parts, item: WorkItem): Promise<WorkOutcome> {
  try {
    return await runPhases(parts, item)
  } catch (error) {
    // a log or a database that is away is no fault of the file, nor is a log that refuses all
    const isBlameless = isAway(error) || error instanceof EventLogUnavailable
    if (item.signal.aborted || !item.isLastTry || isBlameless) throw error
    const why = `Processing failed ${item.attempt} times: ${describeError(error)}`
    await fail(parts, item, await parts.commands.load(payrollFile, item.key), why)
    return { outcome: 'stop', why }
  }
}

/** Goes on with a file from wherever its stream says, until it is complete, failed or held. */
async function runPhases(parts: Parts, item: WorkItem): Promise<WorkOutcome> {
  let terms: PhaseTerms | null = null
  const turnEnds = performance.now() + TURN_MS
  for (;;) {
    let file: Loaded<PayrollFile> = await parts.commands.load(payrollFile, item.key)
    try {
      for (;;) {
        item.signal.throwIfAborted()
        const next = nextStep(file.state)
        // rows that are missing although the last were announced: the upload's own timer decides
        if (next.step === 'complete' || next.step === 'failed' || next.step === 'record_rows') {
          return { outcome: 'done' }
        }
        if (performance.now() > turnEnds) return { outcome: 'again', afterMs: 0 }
        if (!('chunk' in next) || next.chunk === 0) {
          if (await parts.faults.holding('pipeline')) return { outcome: 'held', at: 'pipeline' }
          const fault = await parts.faults.take('pipeline', ['decline', 'timeout'])
          if (fault !== null) {
            file = await fail(parts, item, file, pipelineFault(fault))
            continue
          }
        }
        if (!('chunk' in next)) file = await normalize(parts, item, file)
        else {
          terms ??= await termsOf(parts, file.state)
          file = await workOnChunks(parts, item, file, next, terms)
        }
      }
    } catch (error) {
      // another process works on the file, too: this goes on behind what it stored
      if (!(error instanceof WrongExpectedRevision)) throw error
    }
  }
}

async function normalize(
  parts: Parts,
  item: WorkItem,
  file: Loaded<PayrollFile>,
): Promise<Loaded<PayrollFile>> {
  const { policy_id, policy_revision } = file.state.received!
  const { state, revision } = await parts.commands.load(policy, policy_id)
  if (state === null) return fail(parts, item, file, 'The policy of this file does not exist')
  // how long the file waited makes no difference to its premium
  const events = decide({ type: 'Normalize', policyRevision: policy_revision ?? revision }, file.state)
  return append(parts, item, file, 'normalize', events)
}

/** The terms pinned by the file, whatever the policy says by now. */
async function termsOf(parts: Parts, file: PayrollFile): Promise<PhaseTerms> {
  const pinned = await parts.commands.loadAt(policy, file.received!.policy_id, file.policy_revision!)
  return phaseTerms(pinned.state!)
}

/** Takes the next few chunks of a file through a phase and stores what came out in one append. */
async function workOnChunks(
  parts: Parts,
  item: WorkItem,
  file: Loaded<PayrollFile>,
  { step, chunk }: { step: ChunkStep; chunk: number },
  terms: PhaseTerms,
): Promise<Loaded<PayrollFile>> {
  const chunkCount = file.state.received!.chunk_count
  const stored = await parts.log.readStream(streamOf(payrollFile, item.key), {
    from: step === 'calculate_premium' ? wagesRevision(chunkCount, chunk) : rowsRevision(chunk),
    maxCount: Math.min(CHUNKS_AT_ONCE, chunkCount - chunk),
  })
  const account =
    step === 'calculate_premium' ? await activePrimaryAccount(parts, file.state.received!.employer_id) : null
  const events: PayrollFileEvent[] = []
  let state = file.state
  let bytes = 0
  for (const input of stored) {
    const { data } = parts.registry.decode(input)
    const command =
      step === 'calculate_premium'
        ? premiumCommand(data as CalculatedWages, terms, account?.ach_account_id ?? null)
        : rowsCommand(step, data as RecordedRows, terms)
    const decided = decide(command, state)
    bytes += Buffer.byteLength(JSON.stringify(decided))
    if (events.length > 0 && bytes > APPEND_BYTES) break
    events.push(...decided)
    state = fold(payrollFile, decided, state)
    if (state.failed) break
    // a chunk takes milliseconds: requests get their turn in between
    await nextTurn()
  }
  item.signal.throwIfAborted()
  return append(parts, item, file, `${step}/${chunk}`, events)
}

/** Fails a file where it stands; nothing happens to one that is complete or failed. */
async function fail(
  parts: Parts,
  item: WorkItem,
  file: Loaded<PayrollFile>,
  error: string,
): Promise<Loaded<PayrollFile>> {
  const stage = stageOf(nextStep(file.state).step)
  const events = decide({ type: 'Fail', stage, error }, file.state)
  return events.length === 0 ? file : append(parts, item, file, 'fail', events)
}

/** Decides a step that comes next by construction. */
function decide(command: PayrollFileCommand, state: PayrollFile): readonly PayrollFileEvent[] {
  return orThrow(payrollFile.decide(command, state))
}

/** @throws WrongExpectedRevision when another process wrote to the file since it was loaded. */
function append(
  parts: Parts,
  item: WorkItem,
  file: Loaded<PayrollFile>,
  step: string,
  events: readonly PayrollFileEvent[],
): Promise<Loaded<PayrollFile>> {
  return parts.commands.appendAt(payrollFile, item.key, file, events, {
    ...contextOf(item),
    commandId: `${item.commandId}/${step}`,
  })
}
