import { setTimeout as delay } from 'node:timers/promises'
import type { Clock } from '../ports/clock.ts'
import type { Leases } from '../ports/leases.ts'
import type { Notices } from '../ports/notices.ts'
import { ReadModelsLate } from '../ports/read-models.ts'
import { type Step, traced } from '../ports/tracing.ts'
import { isAway } from '../ports/unavailable.ts'
import type { WorkHint, WorkQueue } from '../ports/work-queue.ts'
import { itemOf, LeaseLost, namedIn, orGivenUp, TimeLimitExceeded } from './attempt.ts'
import { type Backoff, backOff } from './backoff.ts'
import { ClaimEnds, type Ended, type EndedWork } from './claim-ends.ts'
import { describeError } from './describe-error.ts'
import { type ProcessManager, READS_LATE_MS, triesOf, type WorkItem } from './process-manager.ts'
import { fitPayload, UnfitPayload } from './reactions.ts'
import { KindSlots, kindName } from './slots.ts'
import type { ClaimedWork, LeasedAsStored, WorkStore, WorkToStore } from './work-store.ts'

/** What workers tell about; fields hold no personal data. */
export type WorkersReport = (
  what:
    | 'work_retried'
    | 'work_failed'
    // log or database are away: told once for all work, until some of it gets through
    | 'work_interrupted'
    | 'lease_lost'
    | 'workers_disturbed',
  fields: Readonly<Record<string, string | number>>,
) => void

export interface WorkersParts {
  readonly clock: Clock
  readonly store: WorkStore
  readonly leases: Leases
  readonly notices: Notices
  /** Shares hints of what is due among the workers of all processes; what it loses they find by polling. */
  readonly queue: WorkQueue
  readonly report: WorkersReport
  /** Told of every piece of work that ended, for now or for good; must not throw. Interruptions do not count. */
  readonly onEnded?: (processManager: string, outcome: EndedWork) => void
}

/** All times are real milliseconds. */
export interface WorkersOptions {
  /** Pauses after what failed and is retried in real time. */
  readonly backoff: Backoff
  readonly pollMs: number
}

/** Pause before work is tried again that found log or database away, in milliseconds. */
const AWAY_MS = 100

/** An answer that came later, in milliseconds, may tell of leases that were lost meanwhile: shorter than any of them. */
const LATE_MS = 2_500

/** The longest rest between two claims, in milliseconds. */
const LONGEST_REST_MS = 25

class Stopping extends Error {
  override readonly name = 'Stopping'
}

/** A claim of this process. */
interface Running {
  readonly claim: ClaimedWork
  readonly slots: KindSlots
  readonly abort: AbortController
  /** True from when its end is being stored: then its claim may be gone. */
  isEnding: boolean
}

/** Carries out the work of process managers in this process, each kind in slots of its own, each piece under a lease. */
export class Workers {
  readonly #parts: WorkersParts
  readonly #options: WorkersOptions
  readonly #kinds = new Map<string, KindSlots>()
  readonly #ends: ClaimEnds
  readonly #running = new Set<Running>()
  readonly #working = new Set<Promise<void>>()
  /** What stores work under leases whose tokens are not known yet. */
  readonly #advancing = new Set<Promise<LeasedAsStored>>()
  /** How often all leases of this process may have been lost. */
  #lapses = 0
  readonly #stopping = new AbortController()
  #loops: Promise<void>[] = []
  /** When the table is looked at next for whatever has waited long enough, on the clock of `performance.now()`. */
  #pollAt = 0
  /** No claim is made before; on the clock of `performance.now()`. */
  #restUntil = 0
  #wakeLoop: () => void = () => undefined
  #slotIsFree: () => void = () => undefined
  /** Whether work was interrupted because something is away, and none got through since. */
  #isAway = false

  constructor(parts: WorkersParts, managers: readonly ProcessManager[], options: WorkersOptions) {
    this.#parts = parts
    this.#options = options
    for (const { name, work } of managers) {
      for (const [kind, declared] of Object.entries(work)) {
        this.#kinds.set(kindName(name, kind), new KindSlots(name, kind, declared))
      }
    }
    this.#ends = new ClaimEnds(parts, this.#kinds, options.backoff)
    parts.leases.onLapse(() => {
      this.#lapses += 1
      this.#loseAllBut(new Set())
    })
  }

  start(): void {
    const stopListening = this.#parts.notices.onWake('work', () => this.poll())
    this.#loops = [this.#look().finally(stopListening), this.#takeHints()]
  }

  /** Tells what is running to stop; resolves when it has. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    for (const { abort } of this.#running) abort.abort(new Stopping())
    this.#wakeLoop()
    this.#slotIsFree()
    await Promise.all(this.#loops)
    await Promise.allSettled(this.#advancing)
    await Promise.all(this.#working)
  }

  /**
   * Moves a checkpoint with the work that follows: see {@link WorkStore.advance}. What this process has slots for it begins
   * under the lease that it is stored with; the workers of all processes hear of the rest.
   */
  async advance(...[name, from, to, changes]: Parameters<WorkStore['advance']>): Promise<void> {
    const slotsOf = ({ processManager, kind }: WorkToStore) => this.#kinds.get(kindName(processManager, kind))
    const leaseTo = this.#parts.leases.owner
    const isMine = (piece: WorkToStore) => !this.#stopping.signal.aborted && slotsOf(piece)?.reserve(piece)
    const store = changes.store.map((piece) => (isMine(piece) ? { ...piece, leaseTo } : piece))
    const leased = store.filter((piece) => piece.leaseTo)
    const isLate = this.#lateness()
    const advancing = this.#parts.store.advance(name, from, to, { ...changes, store })
    if (leased.length > 0) this.#advancing.add(advancing)
    let begun: LeasedAsStored = new Map()
    try {
      const answer = await advancing
      if (!isLate()) begun = answer
    } finally {
      this.#advancing.delete(advancing)
      for (const piece of leased) {
        const claim = begun.get(piece)
        if (claim) this.#begin(claim, slotsOf(piece)!)
        else slotsOf(piece)!.unreserve(piece)
      }
      // the next look finds what was stored under a lease and not begun
      if (begun.size < leased.length) {
        this.#slotIsFree()
        this.poll()
      }
    }
    this.#stored(store.filter((piece) => !begun.has(piece)))
  }

  /** @returns whether what is asked for from now on was answered too late to be sure of its leases. */
  #lateness(): () => boolean {
    const [lapses, at] = [this.#lapses, performance.now()]
    return () => this.#lapses !== lapses || performance.now() - at > LATE_MS
  }

  #stored(work: readonly WorkToStore[]): void {
    if (work.length === 0) return
    const later = work.filter(({ isLater }) => isLater).map(({ dueAt }) => dueAt)
    if (later.length > 0) this.#pollAtDue(Math.min(...later))
    void this.#offer(work.filter(({ isLater, kind }) => !isLater && !kind.startsWith('$')))
  }

  /** Looks at the table now. */
  poll(): void {
    this.#pollAt = 0
    this.#wakeLoop()
  }

  async #offer(due: readonly WorkHint[]): Promise<void> {
    if (due.length > 0 && !(await this.#parts.queue.offer(due))) this.poll()
  }

  /** Takes hints one by one while a slot is free, so that the workers of all processes share them. */
  async #takeHints(): Promise<void> {
    const stopping = this.#stopping.signal
    for (;;) {
      while (!stopping.aborted && ![...this.#kinds.values()].some(({ isIdle }) => isIdle)) {
        await new Promise<void>((resolve) => {
          this.#slotIsFree = resolve
        })
      }
      const hint = await this.#parts.queue.next(stopping)
      if (!hint) return
      this.#kinds.get(kindName(hint.processManager, hint.kind))?.hinted()
      this.#wakeLoop()
    }
  }

  async #look(): Promise<void> {
    const { store, clock, leases, report } = this.#parts
    const { pollMs } = this.#options
    for (let failures = 0; !this.#stopping.signal.aborted; ) {
      try {
        if (performance.now() >= this.#pollAt) {
          // before anything is asked: what wakes it from now on makes it look again
          this.#pollAt = performance.now() + pollMs
          const now = clock.now()
          // from here on nothing is claimed, nor stored under a lease
          for (const kind of this.#kinds.values()) kind.polled()
          if (this.#advancing.size > 0) {
            // a lease without a known token looks like one that was left behind: another look frees those
            await store.makeDue(now, leases.owner)
          } else {
            const tokens = [...this.#running].map(({ claim }) => claim.token)
            this.#loseAllBut(await store.makeDue(now, leases.owner, tokens))
          }
          const untilTimer = await this.#untilTimerAfter(now)
          this.#pollAt = Math.min(this.#pollAt, performance.now() + untilTimer)
        }
        const hasClaimed = await this.#claim()
        failures = 0
        if (!hasClaimed) await this.#pause(this.#pollAt - performance.now())
      } catch (error) {
        failures += 1
        if (failures === 1) report('workers_disturbed', { reason: describeError(error) })
        await backOff(failures, this.#options.backoff, this.#stopping.signal)
        this.#pollAt = 0
      }
    }
  }

  /** @returns whether there may be more for slots that are free. */
  async #claim(): Promise<boolean> {
    const { store, leases } = this.#parts
    const asked = [...this.#kinds.values()].filter((kind) => kind.toClaim > 0)
    if (asked.length === 0 || this.#stopping.signal.aborted) return false
    await this.#rest()
    const askedAt = performance.now()
    const isLate = this.#lateness()
    const answer = await store.claim({
      owner: leases.owner,
      kinds: asked.map((kind) => kind.request()),
    })
    if (isLate()) this.poll()
    const claims = isLate() ? [] : answer
    const claimedAt = performance.now()
    if (claims.length > 0) this.#restUntil = claimedAt + Math.min(LONGEST_REST_MS, claimedAt - askedAt)
    for (const slots of asked) {
      const { processManager, kind } = slots
      const mine = claims.filter((claim) => claim.processManager === processManager && claim.kind === kind)
      const taken = new Set(slots.claimed(mine))
      for (const claim of mine) this.#begin(claim, slots, taken.has(claim))
    }
    this.#slotIsFree()
    return true
  }

  /** @param hasSlot false: it is given back. */
  #begin(claim: ClaimedWork, slots: KindSlots, hasSlot = true): void {
    const running = { claim, slots, abort: new AbortController(), isEnding: !hasSlot }
    this.#running.add(running)
    const work = running.isEnding ? this.#giveBack(claim) : this.#carryOut(running)
    this.#work(work.finally(() => this.#running.delete(running)))
  }

  /** While there is much to do, slots that become free are filled together: claims take half of the time at the most. */
  async #rest(): Promise<void> {
    const ms = this.#restUntil - performance.now()
    if (ms >= 1) await delay(ms, null, { signal: this.#stopping.signal }).catch(() => undefined)
  }

  #work(work: Promise<void>): void {
    const working: Promise<void> = work.finally(() => this.#working.delete(working))
    this.#working.add(working)
  }

  /** Tells what is running to stop whose claim does not stand any more. */
  #loseAllBut(standing: ReadonlySet<bigint>): void {
    for (const { claim, abort, isEnding } of this.#running) {
      const { kind, key, token } = claim
      if (isEnding || standing.has(token)) continue
      this.#parts.report('lease_lost', namedIn(claim))
      abort.abort(new LeaseLost(`The lease of ${kind} ${key} was lost`))
    }
  }

  /** Leaves a piece to the next process with a slot for it. */
  async #giveBack(claim: ClaimedWork): Promise<void> {
    try {
      const left = await this.#parts.store.end(claim, { end: 'interrupted' })
      if (left === 'due') await this.#offer([claim])
      if (left === 'again') this.poll()
    } catch (error) {
      // it is due again at the next poll
      this.#parts.report('workers_disturbed', { reason: describeError(error) })
    }
  }

  async #carryOut(running: Running): Promise<void> {
    const { claim, slots, abort } = running
    const { store, notices, report, onEnded } = this.#parts
    const begun = performance.now()
    if (this.#stopping.signal.aborted) abort.abort(new Stopping())
    let isKeyFree = false
    const freeKey = (isDone: boolean | null, ms = performance.now() - begun) => {
      if (!isKeyFree) slots.freeKey(claim, isDone, ms)
      isKeyFree = true
    }
    const ended = await traced(stepOf(claim), async (tell) => {
      const attempted = await this.#attempt(claim, slots, abort, (isDone) => {
        freeKey(isDone)
        this.#wakeLoop()
      })
      const isBad = attempted.as === 'retry' || attempted.as === 'failed'
      tell({ outcome: attempted.as ?? 'interrupted', 'error.type': isBad ? attempted.as : null })
      return attempted
    })
    const { end } = ended
    const took = performance.now() - begun
    running.isEnding = true
    try {
      const left = abort.signal.reason instanceof LeaseLost ? 'lost' : await store.end(claim, end)
      if (left !== 'lost' && ended.as !== null) onEnded?.(claim.processManager, ended.as)
      if (left === 'due') await this.#offer([claim])
      if (left === 'again') this.poll()
    } catch (error) {
      // the work is due again at the next poll
      report('workers_disturbed', { reason: describeError(error) })
    } finally {
      freeKey(ended.as === null ? null : ended.as === 'done', took)
      slots.released()
    }
    if (end.end === 'retry' || end.end === 'again') {
      if (end.at === undefined) this.#pollAfter(end.afterMs ?? 0)
      else this.#pollAtDue(end.at)
    }
    this.#slotIsFree()
    this.#wakeLoop()
    notices.wake('progress')
  }

  /** Does a piece of work once. @returns how that ends its claim, and what it is told as. */
  async #attempt(
    claim: ClaimedWork,
    slots: KindSlots,
    abort: AbortController,
    freeKey: WorkItem['freeKey'],
  ): Promise<Ended> {
    const { signal } = abort
    const { retry, timeLimitMs } = slots.declared
    const timeLimit = setTimeout(
      () => abort.abort(new TimeLimitExceeded(`The work took longer than ${timeLimitMs / 1000} s`)),
      timeLimitMs,
    )
    try {
      signal.throwIfAborted()
      // tries that ended neither well nor badly took their workers with them
      if (claim.attempt > triesOf(retry)) return this.#ends.retry(claim, retry, 'every try was cut short')
      const { payload } = fitPayload(slots.declared, claim.kind, claim.payload)
      const outcome = await orGivenUp(
        slots.declared.run(itemOf(claim, slots, { payload, signal, freeKey })),
        signal,
      )
      this.#isAway = false
      return this.#ends.of(claim, retry, outcome)
    } catch (error) {
      if (signal.reason instanceof TimeLimitExceeded)
        return this.#ends.retry(claim, retry, signal.reason.message)
      if (signal.aborted) return { end: { end: 'interrupted' }, as: null }
      const isLate = error instanceof ReadModelsLate
      const why = describeError((isLate && error.cause) || error)
      if (error instanceof UnfitPayload) return this.#ends.failed(claim, why, 'failed')
      if (!isAway(error) && !isLate) return this.#ends.retry(claim, retry, why)
      // while log or database are away, or a table is still being built, nothing can be said against the work: that costs no
      // try, however long it takes
      if (!this.#isAway) this.#parts.report('work_interrupted', { reason: why })
      this.#isAway = true
      return { end: { end: 'retry', afterMs: isLate ? READS_LATE_MS : AWAY_MS, why, isTry: false }, as: null }
    } finally {
      clearTimeout(timeLimit)
    }
  }

  // ---- waiting

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

  /** @param at in service-clock milliseconds; a clock that is moved tells so itself. */
  #pollAtDue(at: number): void {
    this.#pollAfter(at - this.#parts.clock.now())
  }

  #pollAfter(ms: number): void {
    // the poll comes as soon
    if (ms >= this.#options.pollMs) return
    const timer = setTimeout(() => this.poll(), ms + 1)
    timer.unref()
  }

  /** Until something is to be claimed, or the time is over. */
  async #pause(ms: number): Promise<void> {
    if (ms <= 0 || this.#stopping.signal.aborted) return
    if ([...this.#kinds.values()].some(({ toClaim }) => toClaim > 0)) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms)
      this.#wakeLoop = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    this.#wakeLoop = () => undefined
  }
}

/** An attempt, as a step of the trace of what caused the work. */
function stepOf(claim: ClaimedWork): Step {
  const { processManager, kind, tenantId, traceparent } = claim
  const attributes = { ...namedIn(claim), tenant_id: tenantId }
  return { name: `work ${processManager} ${kind}`, kind: 'consumer', causedBy: traceparent, attributes }
}
