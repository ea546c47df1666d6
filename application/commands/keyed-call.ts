import { isRejection, type Rejection, reject } from '../../domain/kernel/rejection.ts'
import type { Application } from './application.ts'
import type { CommandContext } from './command-context.ts'
import type { Turns } from './turns.ts'

/** A request that carries an idempotency key. */
export interface KeyedCall {
  /** Who sent it: client, credential, connection or operator. Keys of two callers never meet. */
  readonly caller: string
  /** What it asks for; one key may serve several operations. */
  readonly operation: string
  readonly key: string
  /** What makes two requests the same, see `requestHash`. */
  readonly requestHash: string
  readonly context: Omit<CommandContext, 'commandId'>
  /** Builds the body of a replay from what the log keeps of an answer; default: that is the body. */
  readonly restore?: (stored: unknown) => unknown
  /** The answer hands out a secret once: it is not stored, and the repeated key is a conflict. */
  readonly secretAnswer?: boolean
}

/** What a request is answered with. */
export interface IdempotentAnswer {
  /** HTTP status below 400: what is refused or fails is no answer, and is not kept. */
  readonly status: number
  readonly body: unknown
  /** What the log keeps of the body, see `restore`. */
  readonly stored?: unknown
  /** Id of what was created; named when a secret answer is asked for again, or the key is used for another body. */
  readonly createdId?: string
}

export interface IdempotentOutcome {
  /** True when an earlier request with this key was answered, and this is its answer again. */
  readonly replayed: boolean
  /** A replay of 201 is 200. */
  readonly status: number
  readonly body: unknown
}

const VISIBLE_ASCII = /^[\x21-\x7e]{1,255}$/

/** True for a usable `Idempotency-Key`: 1 to 255 visible ASCII characters. */
export function isIdempotencyKey(value: unknown): value is string {
  return typeof value === 'string' && VISIBLE_ASCII.test(value)
}

/** Keyed fingerprints of a call: of caller, operation and key together, and of its body. */
export interface Fingerprints {
  readonly ofKey: string
  readonly ofBody: string
}

/** What became of a keyed call, by its own work (`fresh`) or by that of an earlier request with its key. */
export type Performed = Rejection | { readonly fresh: boolean; readonly answer: IdempotentAnswer }

/** A call that this process performs at present. */
interface Running {
  readonly ofBody: string
  readonly performed: Promise<Performed>
}

const runningByTurns = new WeakMap<Turns, Map<string, Running>>()

/**
 * Performs a keyed call. One call per key is under way in this process: who sends the same meanwhile shares what
 * becomes of it, and another body waits, since the key is free for it when the first one is refused.
 */
export async function oncePerKey(
  app: Pick<Application, 'commands' | 'personalData'>,
  call: KeyedCall,
  perform: (fingerprints: Fingerprints) => Promise<Performed>,
): Promise<IdempotentOutcome | Rejection> {
  const fingerprints = fingerprintsOf(app, call)
  const { ofKey, ofBody } = fingerprints
  const running = runningIn(app.commands.turns)
  for (let other = running.get(ofKey); other; other = running.get(ofKey)) {
    if (other.ofBody === ofBody) return outcomeOf(call, await other.performed, true)
    await other.performed.catch(() => undefined)
  }
  const performed = perform(fingerprints)
  running.set(ofKey, { ofBody, performed })
  try {
    return outcomeOf(call, await performed)
  } finally {
    running.delete(ofKey)
  }
}

function fingerprintsOf(
  { personalData }: Pick<Application, 'personalData'>,
  { caller, operation, key, requestHash }: KeyedCall,
): Fingerprints {
  const ofKey = personalData.fingerprint('idempotency', `${caller}|${operation}|${key}`)
  // bound to the key: equal bodies of others, or under other keys, do not show
  return { ofKey, ofBody: personalData.fingerprint('idempotent_request', `${ofKey}|${requestHash}`) }
}

/** @param isShared the work was another request's. */
function outcomeOf(
  { secretAnswer }: KeyedCall,
  performed: Performed,
  isShared = false,
): IdempotentOutcome | Rejection {
  if (isRejection(performed)) return performed
  const { status, body, createdId } = performed.answer
  if (performed.fresh && !isShared) return { replayed: false, status, body }
  if (!secretAnswer) return { replayed: true, status: status === 201 ? 200 : status, body }
  const whose = createdId === undefined ? '' : ` for ${createdId}`
  const why = `The idempotency key was used already${whose}; its secret is shown only once`
  return naming(reject('conflict', 'idempotency_key_used', why), createdId)
}

/** @param createdId what the other request created; its caller is the same, and may see it. */
export function keyReused(createdId?: string): Rejection {
  const whose = createdId === undefined ? '' : `: that of ${createdId}`
  const why = `The idempotency key was used for another request body${whose}`
  return naming(reject('conflict', 'idempotency_key_reused', why), createdId)
}

function naming(rejection: Rejection, id: string | undefined): Rejection {
  return id === undefined ? rejection : { ...rejection, ids: { id } }
}

function runningIn(turns: Turns): Map<string, Running> {
  let running = runningByTurns.get(turns)
  if (!running) {
    running = new Map()
    runningByTurns.set(turns, running)
  }
  return running
}
