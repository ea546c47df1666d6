import type { EventLog } from '../../application/ports/event-log.ts'
import { LOG_START } from '../../application/ports/event-log.ts'
import type { Failure } from './failures.ts'
import type { Lag, LogLag } from './log-lag.ts'
import type { ProjectionState } from './projection.ts'
import type { ProjectionOwner } from './projection-owner.ts'
import type { Comparison, GenerationRecord } from './store.ts'

/** A projection as operators see it. Positions are numbers; times are ISO 8601 UTC. */
export interface ProjectionStatus {
  readonly name: string
  readonly state: ProjectionState
  readonly generation: number
  readonly version: number
  /** The version in the code; null when the code has no such projection. */
  readonly code_version: number | null
  readonly position: number
  readonly head: number
  readonly lag: Lag
  readonly parked_streams: number
  /** The process that runs it; null: none. */
  readonly owner: string | null
  readonly failure: Failure | null
  readonly rebuild: {
    readonly generation: number
    readonly version: number
    readonly state: ProjectionState
    readonly switch: 'auto' | 'manual'
    readonly position: number
    readonly head: number
    /** Events of the log still to go; estimated where positions do not count them. */
    readonly events_left: number
    /** Events of the log gone through per second, lately; estimated likewise. */
    readonly events_per_second: number
    /** Estimated; null while the rate is unknown. */
    readonly seconds_left: number | null
    readonly parked_streams: number
    readonly failure: Failure | null
    /** With the live tables, at one position; null until the rebuild has caught up. */
    readonly comparison: Comparison | null
  } | null
  /** The generation that `rollback` goes back to. */
  readonly retired: {
    readonly generation: number
    readonly version: number
    readonly position: number
    /** How the live generation compared with it before the switch; null where they were not compared. */
    readonly comparison: Comparison | null
  } | null
}

/** A stream that waits for a redrive. */
export interface ShownDeadLetteredStream {
  readonly generation: number
  readonly stream: string
  readonly position: number
  readonly revision: number
  readonly type: string
  readonly category: string
  readonly message: string
  readonly attempts: number
  readonly parked_at: string
}

/** What the status of a projection is made of. */
interface Looked {
  readonly name: string
  /** The version in the code; null when the code has no such projection. */
  readonly codeVersion: number | null
  /** Where this process may run it. */
  readonly local: ProjectionOwner | undefined
  readonly generations: readonly GenerationRecord[]
  readonly head: bigint
  /** The owner of the lease. */
  readonly owner: string | null
  readonly log: EventLog
  readonly lag: LogLag
}

/** A projection as operators see it. */
export async function statusOf(looked: Looked): Promise<ProjectionStatus> {
  const { name, codeVersion, local, generations, head, owner, lag } = looked
  const live = generations.find((one) => one.role === 'live')
  const shadow = generations.find((one) => one.role === 'shadow')
  const retired = generations.find((one) => one.role === 'retired')
  const position = positionOf(local, live)
  return {
    name,
    state: codeVersion === null ? 'detached' : stateOf(local, live),
    generation: live?.generation ?? 0,
    version: live?.version ?? 0,
    code_version: codeVersion,
    position: Number(position),
    head: Number(head),
    lag: await lag.at(position, head),
    parked_streams: live?.deadLetteredStreams ?? 0,
    owner,
    failure: failureIn(local, live) ?? local?.problem ?? null,
    rebuild: shadow ? await rebuildStatus(looked, shadow) : null,
    retired: retired
      ? {
          generation: retired.generation,
          version: retired.version,
          position: Number(retired.position),
          comparison: live?.comparison ?? null,
        }
      : null,
  }
}

async function rebuildStatus(
  { local, head, log }: Looked,
  shadow: GenerationRecord,
): Promise<ProjectionStatus['rebuild']> {
  const position = positionOf(local, shadow)
  const { rate } = shadow
  // in positions, as the rate is
  const left = Number(head > position ? head - position : 0n)
  const whole = await log.count(LOG_START, head)
  return {
    generation: shadow.generation,
    version: shadow.version,
    state: stateOf(local, shadow),
    switch: shadow.autoSwitch ? 'auto' : 'manual',
    position: Number(position),
    head: Number(head),
    events_left: await log.count(position, head),
    events_per_second: head > LOG_START ? Math.round((rate * whole) / Number(head)) : 0,
    seconds_left: left === 0 ? 0 : rate > 0 ? Math.ceil(left / rate) : null,
    parked_streams: shadow.deadLetteredStreams,
    failure: failureIn(local, shadow),
    comparison: shadow.comparison,
  }
}

/** What is applied: this process knows a little more than what is stored. */
function positionOf(local: ProjectionOwner | undefined, record: GenerationRecord | undefined): bigint {
  if (!record) return LOG_START
  const here = local?.runnerOf(record.generation)?.reached ?? LOG_START
  return here > record.position ? here : record.position
}

function stateOf(local: ProjectionOwner | undefined, record: GenerationRecord | undefined): ProjectionState {
  if (!record) return local?.problem ? 'error' : 'new'
  const runner = local?.runnerOf(record.generation)
  return runner?.state === 'error' ? 'error' : record.state
}

function failureIn(local: ProjectionOwner | undefined, record: GenerationRecord | undefined): Failure | null {
  if (!record) return null
  const runner = local?.runnerOf(record.generation)
  return runner ? runner.failure : record.failure
}
