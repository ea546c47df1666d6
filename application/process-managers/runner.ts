import { randomInt } from 'node:crypto'
import { setTimeout as delay, setImmediate as othersTurn } from 'node:timers/promises'
import type { EventRegistry, RecordedEvent } from '../event-store.ts'
import { pagesInTime } from '../pages-in-time.ts'
import type { Clock } from '../ports/clock.ts'
import { type EventLog, LOG_START, type StoredEvent } from '../ports/event-log.ts'
import type { FaultPoint, Faults } from '../ports/faults.ts'
import type { Lease, Leases } from '../ports/leases.ts'
import type { Notices } from '../ports/notices.ts'
import { isAway } from '../ports/unavailable.ts'
import type { OfferedWork, TakenOffer, WorkQueue } from '../ports/work-queue.ts'
import { describeError } from './describe-error.ts'
import {
  type Intent,
  leaseOf,
  type ProcessManager,
  type WorkItem,
  type WorkOutcome,
} from './process-manager.ts'
import {
  CheckpointMoved,
  type ClaimedWork,
  type FailedWork,
  type WorkChanges,
  type WorkEnd,
  type WorkKey,
  type WorkStore,
  type WorkToStore,
} from './work-store.ts'

/** What the runner tells about; fields hold no personal data. */
export type RunnerReport = (
  what:
    | 'work_retried'
    | 'work_failed'
    // the log is away: told once for all work, until some of it gets through
    | 'work_interrupted'
    | 'lease_lost'
    | 'reaction_parked'
    | 'process_manager_restarted'
    | 'workers_disturbed',
  fields: Readonly<Record<string, string | number>>,
) => void

/**
 * How a worker let go of a piece of work: `stop`, its handler gave it up; `failed`, its tries were
 * used up; the others as in {@link WorkOutcome}.
 */
export type EndedWork = WorkOutcome['outcome'] | 'failed'

export interface RunnerParts {
  readonly log: EventLog
  readonly registry: EventRegistry
  readonly clock: Clock
  readonly store: WorkStore
  readonly leases: Leases
  readonly notices: Notices
  /** Brings what is due to the workers; what it loses they find by looking. */
  readonly queue: WorkQueue
  readonly faults: Faults
  readonly report: RunnerReport
  /** Told of every piece of work that ended, for now or for good; must not throw. Interruptions do not count. */
  readonly onEnded?: (processManager: string, outcome: EndedWork) => void
}

/** All times are real milliseconds. */
export interface RunnerOptions {
  /** Pieces of work done at the same time, default 4. */
  readonly workers?: number
  /** How long a dead worker's work waits for another, default 5000. */
  readonly workLeaseMs?: number
  /** How often the runner looks by itself, default 1000. */
  readonly pollMs?: number
  /** How often checkpoints over events without consequences are stored, default 250. */
  readonly checkpointMs?: number
  /** Tries after which work is given up, default 12. */
  readonly maxAttempts?: number
  /** First pause after a failed try, default 250; it doubles up to `longestBackoffMs`. */
  readonly backoffMs?: number
  /** Default 60000. */
  readonly longestBackoffMs?: number
  /** Events in a page at the most, default 1000; the log ends pages of large events earlier. */
  readonly pageSize?: number
}

/** How a process manager does, as operators see it. */
export interface ProcessManagerStatus {
  readonly name: string
  readonly position: bigint
  /** `idle`: no process runs it; `problem`: see there. */
  readonly state: 'active' | 'idle' | 'problem'
  readonly problem: string | null
  /** Who runs it; null when nobody does. */
  readonly owner: string | null
}

/** Kind of work by which a reaction that failed waits for its retries; its key names the event. */
const REACTION = '$reaction'
/** Events of a stream that are read at once to make up for reactions. */
const REACTION_PAGE = 100
/** Reading a page of large events takes long: whatever else the process does gets its turn this often. */
const TURN_MS = 5
/** Before work is given back because log or database are away, in milliseconds: some failures come at once. */
const AWAY_MS = 100
const STOP_WAIT_MS = 10_000

class LeaseLost extends Error {
  override readonly name = 'LeaseLost'
}
class Stopping extends Error {
  override readonly name = 'Stopping'
}

/** A reaction that was made up for: what it wants is stored as its claim ends, so only while that stands. */
interface Reacted {
  readonly outcome: 'done'
  readonly changes: WorkChanges
}

/** A reaction whose turn has not come: an earlier event of its stream waits. That is no try. */
interface WaitsInLine {
  readonly outcome: 'waits'
}

/** A claim in the hands of a worker of this process. */
interface InHand {
  readonly claim: ClaimedWork
  readonly abort: AbortController
  renewedAt: number
}

/**
 * Runs process managers. Each follows the log under a lease of its own, in whichever process holds
 * it; what a page makes it want is stored together with its checkpoint. Workers in every process
 * carry the work out, at least once, each piece under a lease.
 *
 * An event that cannot be read or reacted to holds up only its own stream: the reaction becomes a
 * piece of work, retried and then shown as failed, and later events of that stream queue behind it.
 */
export class ProcessManagerRunner {
  readonly #parts: RunnerParts
  readonly #managers: ReadonlyMap<string, ProcessManager>
  readonly #options: Required<RunnerOptions>
  readonly #stopping = new AbortController()
  readonly #inHand = new Map<bigint, InHand>()
  readonly #working = new Set<Promise<void>>()
  /** In memory, ahead of the stored checkpoint by pages without consequences; only while owned. */
  readonly #positions = new Map<string, bigint>()
  readonly #parkedStreams = new Map<string, Set<string>>()
  #loops: Promise<void>[] = []
  #heartbeat: NodeJS.Timeout | undefined
  /** Hands kept for work that is being leased. */
  #taking = 0
  /** True when the last look took as much as there were hands: there may be more. */
  #moreDue = false
  /** Whether work was interrupted because the log is away, and none got through since. */
  #isLogAway = false
  #woken = false
  #wakeWorkers: () => void = () => undefined
  #handIsFree: () => void = () => undefined

  constructor(parts: RunnerParts, processManagers: readonly ProcessManager[], options: RunnerOptions = {}) {
    this.#parts = parts
    this.#managers = new Map(processManagers.map((manager) => [manager.name, manager]))
    this.#options = {
      workers: 4,
      workLeaseMs: 5_000,
      pollMs: 1_000,
      checkpointMs: 250,
      maxAttempts: 12,
      backoffMs: 250,
      longestBackoffMs: 60_000,
      pageSize: 1_000,
      ...options,
    }
  }

  get names(): readonly string[] {
    return [...this.#managers.keys()]
  }

  /** Starts following the log and working; resolves when work of a dead predecessor was taken over. */
  async start(): Promise<void> {
    const { log, store, notices } = this.#parts
    // alone on the log means that whoever held leases is dead: nothing has to run out first
    if (log.isExclusive) await store.releaseAll(this.names)
    const stopListening = notices.onWake('work', () => this.#wake())
    this.#heartbeat = setInterval(() => void this.#beat(), this.#options.workLeaseMs / 3)
    this.#loops = [
      ...[...this.#managers.values()].map((manager) => this.#own(manager)),
      this.#look().finally(stopListening),
      this.#takeOffers(),
    ]
  }

  /** Lets work in hand come to its next safe point (bounded), stores checkpoints and gives leases back. */
  async stop(): Promise<void> {
    if (this.#stopping.signal.aborted) return
    this.#stopping.abort(new Stopping())
    for (const { abort } of this.#inHand.values()) abort.abort(new Stopping())
    this.#wake()
    this.#handIsFree()
    const ended = Promise.all(this.#loops).then(() => Promise.all(this.#working))
    const patience = new AbortController()
    await Promise.race([ended, delay(STOP_WAIT_MS, null, { signal: patience.signal }).catch(() => null)])
    patience.abort()
    clearInterval(this.#heartbeat)
  }

  /** How far each process manager has got in the log, wherever it runs. */
  async positions(): Promise<ReadonlyMap<string, bigint>> {
    const stored = await this.#parts.store.checkpoints(this.names)
    return new Map(
      this.names.map((name) => [name, this.#positions.get(name) ?? stored.get(name)?.position ?? LOG_START]),
    )
  }

  async status(): Promise<readonly ProcessManagerStatus[]> {
    const [stored, positions, holders] = await Promise.all([
      this.#parts.store.checkpoints(this.names),
      this.positions(),
      this.#parts.leases.holders(this.names.map(leaseOf)),
    ])
    return this.names.map((name) => {
      const problem = stored.get(name)?.problem ?? null
      const owner = holders.get(leaseOf(name)) ?? null
      const state = problem !== null ? 'problem' : owner !== null ? 'active' : 'idle'
      return { name, position: positions.get(name)!, state, problem, owner }
    })
  }

  /** Work that was given up, oldest first. */
  failedWork(limit: number): Promise<readonly FailedWork[]> {
    return this.#parts.store.failed(limit)
  }

  /** Tries work that was given up again: one piece, or all of it. @returns how much of it there is. */
  async redrive(request: { key?: WorkKey; dryRun: boolean }): Promise<number> {
    const count = await this.#parts.store.redrive(request)
    if (!request.dryRun) this.#parts.notices.wake('work')
    return count
  }

  // ---- following the log

  /** Follows the log for a process manager whenever this process holds its lease. */
  async #own(manager: ProcessManager): Promise<void> {
    const { leases, log, report } = this.#parts
    const stopping = this.#stopping.signal
    // a dead predecessor's lease is taken at once, the first time; later owners are alive
    let takeOver = log.isExclusive
    for (let failures = 0; !stopping.aborted; ) {
      let lease: Lease | null = null
      try {
        lease = await leases.acquire(leaseOf(manager.name), { takeOver })
        takeOver = false
        if (lease) {
          await this.#follow(manager, lease, () => {
            failures = 0
          })
        }
      } catch (error) {
        failures += 1
        report('process_manager_restarted', { process_manager: manager.name, error: describeError(error) })
        if (lease && !(error instanceof CheckpointMoved)) {
          await this.#parts.store
            .setProblem(manager.name, lease.epoch, describeError(error))
            .catch(() => undefined)
        }
      } finally {
        this.#positions.delete(manager.name)
        await lease?.release().catch(() => undefined)
      }
      await this.#pause(failures === 0 ? this.#options.pollMs : this.#backoff(failures))
    }
  }

  async #follow(manager: ProcessManager, lease: Lease, onProgress: () => void): Promise<void> {
    const { log, store, notices } = this.#parts
    const { epoch } = lease
    let saved = await store.takeOver(manager.name, epoch)
    let savedAt = performance.now()
    let position = saved
    this.#parkedStreams.set(manager.name, await this.#streamsParked(manager))
    const ended = AbortSignal.any([this.#stopping.signal, lease.lost])
    const types = manager.handles.map((type) => type.name)
    const save = async (changes: WorkChanges): Promise<void> => {
      await store.advance(manager.name, { position: saved, epoch }, position, changes)
      saved = position
      savedAt = performance.now()
    }
    const { pageSize, checkpointMs } = this.#options
    const pages = log.subscribe({ after: saved, types, pageSize, signal: ended })
    const untilSaved = () => (position === saved ? null : savedAt + checkpointMs - performance.now())
    for await (const page of pagesInTime(pages, untilSaved)) {
      if (page === null) {
        await save(NO_CHANGES)
        continue
      }
      if (lease.lost.aborted) break
      const changes = await this.#react(manager, page.events)
      position = page.checkpoint
      const isWanted = changes.store.length > 0 || changes.cancel.length > 0
      if (isWanted || performance.now() - savedAt >= checkpointMs) {
        if (isWanted || position !== saved) await save(changes)
      }
      this.#positions.set(manager.name, position)
      notices.wake('progress')
      void this.#offerStored(changes.store)
      onProgress()
    }
    if (position !== saved && !lease.lost.aborted) await save(NO_CHANGES)
  }

  /** What a page changes about the work; reactions that fail become work themselves. */
  async #react(manager: ProcessManager, events: readonly StoredEvent[]): Promise<WorkChanges> {
    const parkedStreams = await this.#stillParked(manager, events)
    const parked: WorkToStore[] = []
    const park = (event: Pick<StoredEvent, 'stream' | 'revision' | 'type' | 'eventId'>, error?: unknown) => {
      parkedStreams.add(event.stream)
      parked.push(reactionOf(manager, event, this.#parts.clock.now()))
      if (error === undefined) return
      const { stream, revision } = event
      const fields = { process_manager: manager.name, stream, revision, error: describeError(error) }
      this.#parts.report('reaction_parked', fields)
    }
    const readable: RecordedEvent[] = []
    let turnAt = performance.now()
    for (const event of events) {
      if (performance.now() - turnAt > TURN_MS) {
        await othersTurn()
        turnAt = performance.now()
      }
      if (parkedStreams.has(event.stream)) {
        park(event)
        continue
      }
      try {
        readable.push(this.#parts.registry.decode(event))
      } catch (error) {
        park(event, error)
      }
    }
    try {
      return this.#changes(manager, manager.react(readable), parked)
    } catch {
      // one by one, to find out which it is; a page is only a gathering of events
      const intents: Intent[] = []
      for (const event of readable) {
        try {
          if (parkedStreams.has(event.stream)) park(event)
          else intents.push(...manager.react([event]))
        } catch (error) {
          park(event, error)
        }
      }
      return this.#changes(manager, intents, parked)
    }
  }

  /** The last intent about a piece of work is the one that counts. */
  #changes(
    manager: ProcessManager,
    intents: readonly Intent[],
    more: readonly WorkToStore[] = [],
  ): WorkChanges {
    const byKey = new Map<string, WorkToStore | WorkKey>()
    const put = (work: WorkToStore | WorkKey) => {
      const name = JSON.stringify([work.kind, work.key])
      // deleted first, so that the order of storing is the order of the intents
      byKey.delete(name)
      byKey.set(name, work)
    }
    for (const intent of intents) {
      const { kind, key } = intent
      if (intent.intent === 'cancel') put({ processManager: manager.name, kind, key })
      else {
        const { metadata, eventId } = intent.because
        put({
          processManager: manager.name,
          kind,
          key,
          payload: intent.payload,
          dueAt: intent.dueAt ?? this.#parts.clock.now(),
          correlationId: metadata.correlation_id,
          causationId: eventId,
          tenantId: metadata.tenant_id,
          environment: metadata.environment,
        })
      }
    }
    for (const work of more) put(work)
    const store: WorkToStore[] = []
    const cancel: WorkKey[] = []
    for (const work of byKey.values()) {
      if ('payload' in work) store.push(work)
      else cancel.push(work)
    }
    return { store, cancel }
  }

  /**
   * The streams that wait for a reaction. Whether they still do is asked before an event queues
   * behind one, here and not where reactions end: what earlier pages parked is stored by now, and
   * the reaction may have ended in another process.
   */
  async #stillParked(manager: ProcessManager, events: readonly StoredEvent[]): Promise<Set<string>> {
    const known = this.#parkedStreams.get(manager.name)!
    if (known.size === 0 || !events.some(({ stream }) => known.has(stream))) return known
    const present = await this.#streamsParked(manager)
    this.#parkedStreams.set(manager.name, present)
    return present
  }

  async #streamsParked(manager: ProcessManager): Promise<Set<string>> {
    const keys = await this.#parts.store.keysOf(manager.name, REACTION)
    return new Set(keys.map((key) => parseReactionKey(key).stream))
  }

  /**
   * Reacts to the event that a stream waits behind, and with it to all that wait behind it, as far as they can be
   * reacted to: one pass frees the stream, however many there are.
   */
  async #reactLate(
    manager: ProcessManager,
    claim: ClaimedWork,
  ): Promise<WorkOutcome | Reacted | WaitsInLine> {
    const { log, registry, store, clock } = this.#parts
    const { stream, revision } = parseReactionKey(claim.key)
    const waiting = new Set(
      (await store.keysOf(manager.name, REACTION))
        .map(parseReactionKey)
        .filter((other) => other.stream === stream)
        .map((other) => other.revision),
    )
    // the pass of another one took it along since it was claimed
    if (!waiting.has(revision)) return { outcome: 'done' }
    const first = Math.min(...waiting)
    if (first < revision) {
      const failed = await store.keysOf(manager.name, REACTION, 'failed')
      const hasFailed = failed.includes(`${stream}@${first}`)
      return hasFailed
        ? { outcome: 'stop', why: 'an earlier event of the stream failed' }
        : { outcome: 'waits' }
    }
    const intents: Intent[] = []
    const done: WorkKey[] = []
    const next: WorkToStore[] = []
    const { pageSize } = this.#options
    const last = Math.max(...waiting)
    for (let from = revision; from <= last && next.length === 0; ) {
      const page = await log.readStream(stream, { from, maxCount: REACTION_PAGE })
      if (page.length === 0) break
      for (const event of page) {
        if (!waiting.has(event.revision)) continue
        const key = reactionOf(manager, event, clock.now())
        try {
          // what is left of very many goes on as a piece of its own
          if (done.length === pageSize) next.push(key)
          else intents.push(...manager.react([registry.decode(event)]))
        } catch (error) {
          if (event.revision === revision) throw error
          // what the stream waits behind from now on: its tries count afresh
          next.push(key)
        }
        if (next.length > 0) break
        done.push(key)
      }
      from = page.at(-1)!.revision + 1
      await othersTurn()
    }
    if (done.length === 0) return { outcome: 'stop', why: `${stream} has no revision ${revision}` }
    const changes = this.#changes(manager, intents, next)
    // the first one ends with its claim
    return { outcome: 'done', changes: { ...changes, cancel: [...changes.cancel, ...done.slice(1)] } }
  }

  // ---- working

  /** Offers what was just stored and is due to all workers; for what is due later, looking has its timer. */
  async #offerStored(stored: readonly WorkToStore[]): Promise<void> {
    if (stored.length === 0) return
    const now = this.#parts.clock.now()
    const due = stored.filter(({ dueAt }) => dueAt <= now)
    if (due.length < stored.length) this.#wake()
    await this.#offer(due.map((work) => offerOf(work, `${work.causationId}@${work.dueAt}`)))
  }

  async #offer(work: readonly OfferedWork[]): Promise<void> {
    if (work.length > 0 && !(await this.#parts.queue.offer(work))) this.#wake()
  }

  /** Takes offers one by one while a hand is free, so that the workers of all processes share them. */
  async #takeOffers(): Promise<void> {
    const stopping = this.#stopping.signal
    for (;;) {
      await this.#untilHandIsFree()
      const offer = await this.#parts.queue.next(stopping)
      if (!offer) return
      // looking may have filled all hands meanwhile
      await this.#untilHandIsFree()
      this.#track(this.#take(offer))
    }
  }

  async #take(offer: TakenOffer): Promise<void> {
    let claim: ClaimedWork | undefined
    try {
      claim = (await this.#claim(1, this.#parts.clock.now(), offer.work))[0]
    } catch {
      this.#wake()
    }
    // else it is not due, done, or in other hands
    if (claim) await this.#carryOut(claim)
    offer.acknowledge()
  }

  /** Looks for work that is due: for all that no offer has brought. */
  async #look(): Promise<void> {
    const { report } = this.#parts
    const { pollMs } = this.#options
    for (let failures = 0; !this.#stopping.signal.aborted; ) {
      this.#woken = false
      try {
        const free = this.#freeHands
        const now = this.#parts.clock.now()
        const claims = free > 0 ? await this.#claim(free, now) : []
        for (const claim of claims) this.#track(this.#carryOut(claim))
        this.#moreDue = claims.length >= free
        failures = 0
        const pause = this.#moreDue ? pollMs : Math.min(pollMs, await this.#untilTimerAfter(now))
        await this.#pauseUnlessWoken(pause)
      } catch (error) {
        failures += 1
        if (failures === 1) report('workers_disturbed', { error: describeError(error) })
        await this.#pauseUnlessWoken(this.#backoff(failures))
      }
    }
  }

  async #untilHandIsFree(): Promise<void> {
    while (this.#freeHands <= 0 && !this.#stopping.signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#handIsFree = resolve
      })
    }
  }

  get #freeHands(): number {
    return this.#options.workers - this.#inHand.size - this.#taking
  }

  /** Takes work into hands that are free; they are kept for it from the call on. */
  async #claim(limit: number, now: number, only?: WorkKey): Promise<readonly ClaimedWork[]> {
    const { store, leases, faults } = this.#parts
    this.#taking += limit
    try {
      const claims = await store.claim({
        processManagers: this.names,
        owner: leases.owner,
        leaseMs: this.#options.workLeaseMs,
        now,
        holds: await faults.holds(),
        limit,
        ...(only ? { only } : {}),
      })
      const renewedAt = performance.now()
      for (const claim of claims) {
        this.#inHand.set(claim.token, { claim, abort: new AbortController(), renewedAt })
      }
      return claims
    } finally {
      this.#taking -= limit
      this.#handIsFree()
    }
  }

  #track(work: Promise<void>): void {
    const working: Promise<void> = work.finally(() => this.#working.delete(working))
    this.#working.add(working)
  }

  /**
   * Real milliseconds until the first timer after the time that was last looked at; a virtual clock
   * wakes the workers when it is moved.
   */
  async #untilTimerAfter(now: number): Promise<number> {
    const { clock, store } = this.#parts
    if (clock.kind === 'virtual') return Number.POSITIVE_INFINITY
    const due = await store.nextDue(now)
    return due === null ? Number.POSITIVE_INFINITY : Math.max(1, due - clock.now())
  }

  async #carryOut(claim: ClaimedWork): Promise<void> {
    const { store, notices, report, onEnded } = this.#parts
    const inHand = this.#inHand.get(claim.token)!
    const { signal } = inHand.abort
    if (this.#stopping.signal.aborted) inHand.abort.abort(new Stopping())
    let end: WorkEnd
    let stopped = false
    try {
      signal.throwIfAborted()
      // tries that ended neither well nor badly took their workers with them
      if (claim.attempt > this.#options.maxAttempts) {
        end = this.#retry(claim, null, 'every try was cut short')
      } else {
        const outcome = await this.#handle(claim, signal)
        stopped = outcome.outcome === 'stop'
        this.#isLogAway = false
        end = this.#endOf(claim, outcome)
      }
    } catch (error) {
      // while log or database are away nothing can be said against the work: that costs no try, however long it takes
      if (signal.aborted) end = { end: 'interrupted' }
      else if (isAway(error)) {
        await delay(AWAY_MS, null, { signal }).catch(() => undefined)
        end = { end: 'interrupted' }
        if (!this.#isLogAway) report('work_interrupted', { error: describeError(error) })
        this.#isLogAway = true
      } else end = this.#retry(claim, null, describeError(error))
    }
    try {
      const left = signal.reason instanceof LeaseLost ? 'lost' : await store.end(claim, end)
      if (left !== 'lost' && end.end !== 'interrupted')
        onEnded?.(claim.processManager, stopped ? 'stop' : end.end)
      if (left === 'ended' && end.end === 'done') void this.#offerStored(end.changes?.store ?? [])
      if (left === 'due') await this.#offer([offerOf(claim, `${claim.causationId}@${claim.token}`)])
    } catch (error) {
      // the lease runs out by itself, then the work is done again
      report('workers_disturbed', { error: describeError(error) })
    } finally {
      this.#inHand.delete(claim.token)
    }
    if (end.end === 'held') this.#wakeWhenReleased(end.at)
    if (end.end === 'retry') this.#wakeAfter(end.afterMs)
    if (end.end === 'reschedule' || this.#moreDue) this.#wake()
    this.#handIsFree()
    notices.wake('progress')
  }

  async #handle(claim: ClaimedWork, signal: AbortSignal): Promise<WorkOutcome | Reacted | WaitsInLine> {
    const manager = this.#managers.get(claim.processManager)!
    if (claim.kind === REACTION) return this.#reactLate(manager, claim)
    const handler = manager.work[claim.kind]
    if (!handler) throw new Error(`Process manager ${manager.name} has no work of kind ${claim.kind}`)
    const { processManager, kind, key, payload, attempt, dueAt } = claim
    const { correlationId, causationId, tenantId, environment } = claim
    const item: WorkItem = {
      ...{ processManager, kind, key, payload, attempt, dueAt },
      ...{ correlationId, causationId, tenantId, environment, signal },
    }
    return handler(item)
  }

  #endOf(claim: ClaimedWork, outcome: WorkOutcome | Reacted | WaitsInLine): WorkEnd {
    switch (outcome.outcome) {
      case 'waits': {
        const why = 'an earlier event of the stream waits'
        return { end: 'retry', afterMs: this.#options.pollMs, why, isTry: false }
      }
      case 'done':
        return 'changes' in outcome ? { end: 'done', changes: outcome.changes } : { end: 'done' }
      case 'held':
        return { end: 'held', at: outcome.at }
      case 'reschedule':
        return { end: 'reschedule', at: outcome.at }
      case 'retry':
        return this.#retry(claim, outcome.afterMs, outcome.why)
      case 'stop':
        this.#tellOfFailure(claim, outcome.why)
        return { end: 'failed', why: outcome.why }
    }
  }

  #retry(claim: ClaimedWork, afterMs: number | null, why: string): WorkEnd {
    if (claim.attempt >= this.#options.maxAttempts) {
      this.#tellOfFailure(claim, why)
      return { end: 'failed', why }
    }
    const { processManager, kind, key, attempt } = claim
    this.#parts.report('work_retried', { process_manager: processManager, kind, key, attempt, error: why })
    return { end: 'retry', afterMs: afterMs ?? this.#backoff(attempt), why }
  }

  #tellOfFailure(claim: ClaimedWork, why: string): void {
    const { processManager, kind, key, attempt } = claim
    this.#parts.report('work_failed', { process_manager: processManager, kind, key, attempt, error: why })
  }

  /** Renews all claims in hand at once; what is no longer ours, or was not renewed in time, is let go. */
  async #beat(): Promise<void> {
    const { store, report } = this.#parts
    const { workLeaseMs } = this.#options
    if (this.#inHand.size === 0) return
    const before = [...this.#inHand.values()]
    const askedAt = performance.now()
    let standing: ReadonlySet<bigint> | null = null
    try {
      standing = await store.renew(
        before.map(({ claim }) => claim.token),
        workLeaseMs,
      )
    } catch {
      // judged by the time since the last renewal
    }
    for (const inHand of before) {
      if (!this.#inHand.has(inHand.claim.token)) continue
      if (standing?.has(inHand.claim.token)) inHand.renewedAt = Math.max(inHand.renewedAt, askedAt)
      else if (standing !== null || performance.now() - inHand.renewedAt >= workLeaseMs) {
        const { processManager, kind, key } = inHand.claim
        report('lease_lost', { process_manager: processManager, kind, key })
        inHand.abort.abort(new LeaseLost(`The lease of ${kind} ${key} was lost`))
      }
    }
  }

  // ---- waiting

  #wakeWhenReleased(point: FaultPoint): void {
    this.#parts.faults
      .released(point, this.#stopping.signal)
      .then(() => this.#parts.notices.wake('work'))
      .catch(() => undefined)
  }

  #wakeAfter(ms: number): void {
    // the poll comes as soon
    if (ms >= this.#options.pollMs) return
    const timer = setTimeout(() => this.#wake(), ms + 1)
    timer.unref()
  }

  #wake(): void {
    this.#woken = true
    this.#wakeWorkers()
  }

  async #pauseUnlessWoken(ms: number): Promise<void> {
    if (this.#woken || this.#stopping.signal.aborted) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms)
      this.#wakeWorkers = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    this.#wakeWorkers = () => undefined
  }

  async #pause(ms: number): Promise<void> {
    await delay(ms, null, { signal: this.#stopping.signal }).catch(() => undefined)
  }

  /** Between half and all of what doubles with each failure. */
  #backoff(failures: number): number {
    const { backoffMs, longestBackoffMs } = this.#options
    const longest = Math.min(longestBackoffMs, backoffMs * 2 ** Math.min(failures - 1, 20))
    return Math.ceil(longest / 2) + randomInt(Math.ceil(longest / 2) + 1)
  }
}

const NO_CHANGES: WorkChanges = { store: [], cancel: [] }

function offerOf({ processManager, kind, key }: WorkKey, version: string): OfferedWork {
  return { processManager, kind, key, version }
}

/** A failed reaction as work; the event's metadata may be unreadable too, so nothing is taken from it. */
function reactionOf(
  manager: ProcessManager,
  event: Pick<StoredEvent, 'stream' | 'revision' | 'type' | 'eventId'>,
  now: number,
): WorkToStore {
  return {
    processManager: manager.name,
    kind: REACTION,
    key: `${event.stream}@${event.revision}`,
    payload: { type: event.type },
    dueAt: now,
    correlationId: event.eventId,
    causationId: event.eventId,
    tenantId: null,
    environment: null,
  }
}

function parseReactionKey(key: string): { stream: string; revision: number } {
  const at = key.lastIndexOf('@')
  return { stream: key.slice(0, at), revision: Number(key.slice(at + 1)) }
}
