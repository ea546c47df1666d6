import { createHash } from 'node:crypto'
import { isRejection, type Rejection, reject } from '../../domain/kernel/rejection.ts'
import { type IdempotencyKey, idempotencyKey } from '../../domain/uniqueness/idempotency-key.ts'
import type { Application } from '../application.ts'
import type { CommandContext } from '../command-handling/command-handler.ts'
import { TimeSlice } from '../time-slices.ts'

/** A request that carries an idempotency key. */
export interface IdempotentRequest {
  /** Who sent it: client, credential, connection or operator. Keys of two callers never meet. */
  readonly caller: string
  /** What it asks for; one key may serve several operations. */
  readonly operation: string
  readonly key: string
  /** What makes two requests the same, see {@link requestHash}. */
  readonly requestHash: string
  readonly context: Omit<CommandContext, 'commandId'>
  /** The answer hands out a secret once: it is not stored, and the repeated key is a conflict. */
  readonly secretAnswer?: boolean
  /**
   * Command id that a new claim fixes, where the request is part of another one that holds it already;
   * default a random one. A key that was claimed before keeps the id of that claim.
   */
  readonly commandId?: string
  /**
   * Runs before anything is stored, unless the key was answered already. What it throws refuses the
   * request and leaves the key as it is: one that was not claimed is free for a corrected request.
   * @param claimedAs the command id under which the work is done; null while nobody fixed one. What an
   *   earlier attempt stored under it was accepted then, and must not be refused by what changed since.
   */
  readonly check?: (claimedAs: string | null) => Promise<void>
  /** Builds the body of a replay from what was stored, now or later; default: the stored body is the body. */
  readonly restore?: (stored: unknown) => unknown
}

/** What a request is answered with. */
export interface IdempotentAnswer {
  /** HTTP status; 400 and above is a failure, which is not kept. */
  readonly status: number
  readonly body: unknown
  /** What the log keeps of the body, when the body itself holds personal data; see `restore`. */
  readonly stored?: unknown
  /** Id of what was created; named when a secret answer is asked for again. */
  readonly createdId?: string
}

export interface IdempotentOutcome {
  /** True when an earlier request with this key was answered, and this is its answer again. */
  readonly replayed: boolean
  /** A replay of 201 is 200. */
  readonly status: number
  readonly body: unknown
}

/** What of the application this works with. */
type Parts = Pick<Application, 'commands' | 'personalData' | 'randomness' | 'log'>

/** A request of this process that holds a key at present. */
interface Running {
  readonly requestHash: string
  readonly answer: Promise<Replayable>
}

type Replayable = Rejection | { readonly fresh: boolean; readonly answer: IdempotentAnswer }

const VISIBLE_ASCII = /^[\x21-\x7e]{1,255}$/

/** Characters of the canonical text that are kept before they are hashed. */
const HASHED_AT_ONCE = 64 * 1024

/** Waits for another process that holds the key, in real milliseconds: about 2 seconds in all. */
const POLL_MS = [20, 40, 80, 160, 300, 600, 800] as const

const runningByHandler = new WeakMap<object, Map<string, Running>>()

/** True for a usable `Idempotency-Key`: 1 to 255 visible ASCII characters. */
export function isIdempotencyKey(value: unknown): value is string {
  return typeof value === 'string' && VISIBLE_ASCII.test(value)
}

/** An array or object of which some elements are hashed already. */
interface OpenPart {
  readonly elements: readonly unknown[]
  /** The key in front of each element, sorted; null in an array. */
  readonly keys: readonly string[] | null
  next: number
}

/**
 * Hash of a request's JSON value that does not depend on the order of members or on white space.
 * It leaves this process only as a keyed fingerprint.
 */
export async function requestHash(value: unknown): Promise<string> {
  const hash = createHash('sha256')
  const slice = new TimeSlice()
  const open: OpenPart[] = []
  let text = ''
  const write = (part: unknown): void => {
    if (Array.isArray(part)) {
      text += '['
      open.push({ elements: part, keys: null, next: 0 })
    } else if (typeof part === 'object' && part !== null) {
      text += '{'
      const keys = Object.keys(part).sort()
      const elements = keys.map((key) => (part as Record<string, unknown>)[key])
      open.push({ elements, keys, next: 0 })
    } else {
      text += JSON.stringify(part) ?? 'undefined'
    }
  }
  write(value)
  for (let part = open.at(-1); part !== undefined; part = open.at(-1)) {
    if (part.next === part.elements.length) {
      text += part.keys ? '}' : ']'
      open.pop()
      if (open.length > 0) text += ','
    } else {
      if (part.keys) text += `${JSON.stringify(part.keys[part.next])}:`
      const element = part.elements[part.next]
      part.next += 1
      write(element)
      if (typeof element !== 'object' || element === null) text += ','
    }
    if (text.length > HASHED_AT_ONCE) {
      hash.update(text)
      text = ''
      await slice.over()
    }
  }
  return hash.update(text).digest('hex')
}

/**
 * Runs a request once per key. The claim of the key fixes a command id; `run` derives every id from
 * it, so that an attempt that crashed or failed half way is finished by the next one, never doubled.
 * The same request again is answered with the first answer; parallel ones share one run. Of attempts that
 * ran beside each other, because one was slow and taken for dead, the answer stored first counts.
 * @param run the work; thrown errors and answers of 400 and above leave the key open for a retry.
 * @returns a conflict when the key was used for another request, or when its answer was a secret.
 */
export async function runIdempotent(
  app: Parts,
  request: IdempotentRequest,
  run: (commandId: string) => Promise<IdempotentAnswer>,
): Promise<IdempotentOutcome | Rejection> {
  const { fingerprint: fingerprintOf } = app.personalData
  const fingerprint = fingerprintOf.call(
    app.personalData,
    'idempotency',
    `${request.caller}|${request.operation}|${request.key}`,
  )
  const hash = fingerprintOf.call(app.personalData, 'idempotent_request', request.requestHash)
  const running = runningIn(app)
  const other = running.get(fingerprint)
  if (other) {
    if (other.requestHash !== hash) return keyReused()
    const shared = await other.answer
    return isRejection(shared) ? shared : outcome(request, shared.answer, shared.answer.status < 400)
  }
  const answer = attempt(app, request, fingerprint, hash, run)
  running.set(fingerprint, { requestHash: hash, answer })
  try {
    const own = await answer
    return isRejection(own) ? own : outcome(request, own.answer, !own.fresh)
  } finally {
    running.delete(fingerprint)
  }
}

async function attempt(
  app: Parts,
  request: IdempotentRequest,
  fingerprint: string,
  hash: string,
  run: (commandId: string) => Promise<IdempotentAnswer>,
): Promise<Replayable> {
  const before = (await app.commands.load(idempotencyKey, fingerprint)).state
  if (before.claimed && before.claimed.request_hash !== hash) return keyReused()
  if (before.answered) return replay(request, before)
  await request.check?.(before.claimed?.command_id ?? request.commandId ?? null)

  const ownCommandId = request.commandId ?? app.randomness.commandId()
  const claim = await app.commands.execute(
    idempotencyKey,
    fingerprint,
    { type: 'Claim', data: { fingerprint, request_hash: hash, command_id: ownCommandId } },
    // several keys may claim one command id, and event ids are unique in the log
    { ...request.context, commandId: `${ownCommandId}/claim/${fingerprint}` },
  )
  if (isRejection(claim)) return claim
  let state = claim.state
  const claimedBefore = state.claimed!.command_id !== ownCommandId
  // the claim may belong to a live request elsewhere; while this process is alone, only to a dead one
  if (claimedBefore && !state.answered && !app.log.soleWriter()) {
    state = await answeredElsewhere(app, fingerprint, state)
  }
  if (state.answered) return replay(request, state)

  const { command_id } = state.claimed!
  const answer = await run(command_id)
  if (answer.status >= 400) return { fresh: true, answer }
  const stored = answer.stored === undefined ? answer.body : answer.stored
  const answered = await app.commands.execute(
    idempotencyKey,
    fingerprint,
    {
      type: 'Answer',
      data: {
        fingerprint,
        status: answer.status,
        body: request.secretAnswer ? null : (stored ?? null),
        created_id: answer.createdId ?? null,
      },
    },
    // an id of its own: an attempt that another took over must not find the other's answer and take it for its own
    { ...request.context, commandId: app.randomness.commandId() },
  )
  if (isRejection(answered)) return answered
  return answered.events.length === 0 ? replay(request, answered.state) : { fresh: true, answer }
}

/** Polls the key's stream until the holder has answered, or is taken for dead. */
async function answeredElsewhere(
  app: Parts,
  fingerprint: string,
  claimed: IdempotencyKey,
): Promise<IdempotencyKey> {
  let state = claimed
  for (const delay of POLL_MS) {
    await new Promise((resolve) => setTimeout(resolve, delay))
    state = (await app.commands.load(idempotencyKey, fingerprint)).state
    if (state.answered) break
  }
  return state
}

async function replay(request: IdempotentRequest, key: IdempotencyKey): Promise<Replayable> {
  const { status, body, created_id } = key.answered!
  const restored = request.restore && !request.secretAnswer ? await request.restore(body) : body
  const answer = { status, body: restored }
  return { fresh: false, answer: created_id === null ? answer : { ...answer, createdId: created_id } }
}

function outcome(
  request: IdempotentRequest,
  answer: IdempotentAnswer,
  replayed: boolean,
): IdempotentOutcome | Rejection {
  const { status, body, createdId } = answer
  if (!replayed) return { replayed, status, body }
  if (request.secretAnswer) {
    return reject(
      'conflict',
      'idempotency_key_used',
      `The idempotency key was used already${createdId === undefined ? '' : ` and created ${createdId}`}; its secret is shown only once`,
    )
  }
  return { replayed, status: status === 201 ? 200 : status, body }
}

function keyReused(): Rejection {
  return reject('conflict', 'idempotency_key_reused', 'The idempotency key was used for another request body')
}

function runningIn(app: Parts): Map<string, Running> {
  let running = runningByHandler.get(app.commands)
  if (!running) {
    running = new Map()
    runningByHandler.set(app.commands, running)
  }
  return running
}
