import { createHash } from 'node:crypto'
import { type ChainProblem, HashChains } from '../../../application/audit/chain-verification.ts'
import { hashOf } from '../../../application/commands/hash-chain.ts'
import { LOG_START, type StoredEvent } from '../../../application/ports/event-log.ts'
import { type MovableLog, MoveRefused } from '../../../application/ports/movable-log.ts'
import { LogCursor } from './log-cursor.ts'

/** The hash chain of a log is broken. */
export function chainBroken(log: string, event: StoredEvent, problem: ChainProblem): MoveRefused {
  return new MoveRefused(`The log in ${log} was changed: ${problem.replace('_', ' ')} at ${nameOf(event)}`)
}

/** @throws MoveRefused where a stream was cut: what it had would come back, or stay behind. */
export async function refuseCut(log: MovableLog): Promise<void> {
  const cut = await log.findCut()
  if (cut)
    throw new MoveRefused(
      `Stream ${cut.stream} in ${log.name} was cut or deleted at position ${cut.position}`,
    )
}

/** How an event is named in messages. */
export function nameOf({ stream, revision, eventId, type, position }: StoredEvent): string {
  return `${stream}@${revision} (${type}, event id ${eventId}, position ${position})`
}

/** What was found of a log from its beginning. */
export interface LogAccount {
  readonly log: string
  readonly events: number
  readonly streams: number
  /** Of data and metadata. */
  readonly bytes: number
  /** Position of the last event, as a decimal string; it means something in this log only. */
  readonly head: string
  /**
   * SHA-256 over the hashes of all events in the order of the log. As each of them covers its event and its
   * predecessor in the stream, two logs with the same value are the same to the byte and in the same order.
   */
  readonly log_hash: string
}

/** Goes through a log event by event, checks every hash chain, and counts. */
export class LogProof {
  events = 0
  streams = 0
  bytes = 0
  position = LOG_START
  readonly #log: MovableLog
  readonly #chains: HashChains
  readonly #digest = createHash('sha256')

  constructor(log: MovableLog) {
    this.#log = log
    this.#chains = new HashChains((places) => log.eventsAt(places))
  }

  /** To be awaited before the events of a page are taken. */
  prepare(page: readonly StoredEvent[]): Promise<void> {
    return this.#chains.prepare(page)
  }

  /** Takes the next event of the log. @throws MoveRefused when its chain is broken */
  take(event: StoredEvent): void {
    const problem = this.#chains.check(event)
    if (problem) throw chainBroken(this.#log.name, event, problem)
    this.events += 1
    if (event.revision === 0) this.streams += 1
    this.bytes += Buffer.byteLength(event.data) + Buffer.byteLength(event.metadata)
    this.position = event.position
    this.#digest.update(hashOf(event.metadata))
  }

  account(): LogAccount {
    const { events, streams, bytes, position } = this
    const log_hash = this.#digest.copy().digest('hex')
    return { log: this.#log.name, events, streams, bytes, head: String(position), log_hash }
  }
}

/**
 * Proves one log by itself, to be held against the account of another one.
 * @param report hears of every page: events so far, and the share of the log that they are, 0 to 1.
 * @throws MoveRefused when its chain is broken
 */
export async function proveLog(
  log: MovableLog,
  report: (events: number, share: number) => void,
  signal: AbortSignal,
): Promise<LogAccount> {
  await refuseCut(log)
  const head = await log.head()
  const proof = new LogProof(log)
  const cursor = new LogCursor(log, LOG_START)
  for (let ready = await cursor.ready(); ready.length > 0; ready = await cursor.ready()) {
    signal.throwIfAborted()
    await proof.prepare(ready)
    for (let n = 0; n < ready.length; n += 1) proof.take(cursor.next())
    report(proof.events, shareOf(proof.position, head))
  }
  return proof.account()
}

/** How much of a log lies before a position, 0 to 1. */
export function shareOf(position: bigint, head: bigint): number {
  return head === LOG_START ? 1 : Math.min(1, Number(position) / Number(head))
}
