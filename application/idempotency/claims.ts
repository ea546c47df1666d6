import { isRejection, type Rejection, reject } from '../../domain/kernel/rejection.ts'
import { type IdempotencyKey, idempotencyKey } from '../../domain/uniqueness/idempotency-key.ts'
import type { Application } from '../application.ts'
import type { CommandContext } from '../command-handling/command-context.ts'
import {
  fingerprintsOf,
  firstAnswer,
  type IdempotentAnswer,
  type IdempotentOutcome,
  type KeyedCall,
  keyReused,
  replayOf,
} from './keyed-call.ts'

/** A call whose key is claimed before its work begins. */
export interface ClaimedCall extends KeyedCall {
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
}

/** What of the application this works with. */
type Parts = Pick<Application, 'commands' | 'personalData' | 'randomness' | 'log'>
type Run = (context: CommandContext) => Promise<IdempotentAnswer>

/** A request of this process that holds a key at present. */
interface Running {
  readonly ofBody: string
  readonly answer: Promise<Replayable>
}

type Replayable = Rejection | { readonly fresh: boolean; readonly answer: IdempotentAnswer }

/** Waits for another process that holds the key, in real milliseconds: about 2 seconds in all. */
const POLL_MS = [20, 40, 80, 160, 300, 600, 800] as const

const runningByHandler = new WeakMap<object, Map<string, Running>>()

/**
 * Runs a request once per key, for work that is more than one append: several streams, secrets, calls to the outside.
 * The claim of the key fixes a command id; `run` derives every id from it, so that an attempt that crashed or failed
 * half way is finished by the next one, never doubled. The same request again is answered with the first answer;
 * parallel ones share one run. Of attempts that ran beside each other, because one was slow and taken for dead, the
 * answer stored first counts.
 * @param run the work; thrown errors and answers of 400 and above leave the key open for a retry.
 * @returns a conflict when the key was used for another request, or when its answer was a secret.
 */
export async function runClaimed(
  app: Parts,
  call: ClaimedCall,
  run: Run,
): Promise<IdempotentOutcome | Rejection> {
  const { ofKey, ofBody } = fingerprintsOf(app, call)
  const running = runningIn(app)
  const other = running.get(ofKey)
  if (other) {
    if (other.ofBody !== ofBody) return keyReused()
    const shared = await other.answer
    return isRejection(shared) ? shared : outcome(call, shared.answer, shared.answer.status < 400)
  }
  const answer = attempt(app, call, ofKey, ofBody, run)
  running.set(ofKey, { ofBody, answer })
  try {
    const own = await answer
    return isRejection(own) ? own : outcome(call, own.answer, !own.fresh)
  } finally {
    running.delete(ofKey)
  }
}

async function attempt(
  app: Parts,
  call: ClaimedCall,
  ofKey: string,
  ofBody: string,
  run: Run,
): Promise<Replayable> {
  const before = (await app.commands.load(idempotencyKey, ofKey)).state
  if (before.claimed && before.claimed.request_hash !== ofBody) return keyReused()
  if (before.answered) return replay(call, before)
  await call.check?.(before.claimed?.command_id ?? call.commandId ?? null)

  const ownCommandId = call.commandId ?? app.randomness.commandId()
  const claim = await app.commands.execute(
    idempotencyKey,
    ofKey,
    { type: 'Claim', data: { fingerprint: ofKey, request_hash: ofBody, command_id: ownCommandId } },
    { ...call.context, commandId: ownCommandId },
  )
  if (isRejection(claim)) return claim
  let state = claim.state
  const claimedBefore = state.claimed!.command_id !== ownCommandId
  // the claim may belong to a live request elsewhere; while this process is alone, only to a dead one
  if (claimedBefore && !state.answered && !app.log.isExclusive) {
    state = await answeredElsewhere(app, ofKey, state)
  }
  if (state.answered) return replay(call, state)

  const context = { ...call.context, commandId: state.claimed!.command_id, mayRepeat: true }
  const answer = await run(context)
  if (answer.status >= 400) return { fresh: true, answer }
  const kept = call.secretAnswer ? { ...answer, stored: null } : answer
  const first = await keepAnswer(app, ofKey, kept, context)
  return first === null ? { fresh: true, answer } : replay(call, first)
}

/**
 * Keeps the answer of a key, unless another attempt has answered.
 * @returns null when it is kept, else the key with the other's answer.
 */
export async function keepAnswer(
  app: Pick<Application, 'commands'>,
  ofKey: string,
  { status, body, stored = body, createdId }: IdempotentAnswer,
  context: CommandContext,
): Promise<IdempotencyKey | null> {
  const answered = await app.commands.execute(
    idempotencyKey,
    ofKey,
    {
      type: 'Answer',
      data: { fingerprint: ofKey, status, body: stored ?? null, created_id: createdId ?? null },
    },
    context,
  )
  if (isRejection(answered)) throw new Error(answered.message)
  return answered.events.length === 0 ? answered.state : null
}

/** The kept answer of a key that has one. */
export async function keptAnswer(
  { restore }: Pick<KeyedCall, 'restore'>,
  { answered }: IdempotencyKey,
): Promise<IdempotentAnswer> {
  const { status, body, created_id } = answered!
  const answer = { status, body: restore ? await restore(body) : body }
  return created_id === null ? answer : { ...answer, createdId: created_id }
}

/** Polls the key's stream until the holder has answered, or is taken for dead. */
async function answeredElsewhere(
  app: Parts,
  ofKey: string,
  claimed: IdempotencyKey,
): Promise<IdempotencyKey> {
  let state = claimed
  for (const delay of POLL_MS) {
    await new Promise((resolve) => setTimeout(resolve, delay))
    state = (await app.commands.load(idempotencyKey, ofKey)).state
    if (state.answered) break
  }
  return state
}

async function replay(call: ClaimedCall, key: IdempotencyKey): Promise<Replayable> {
  return { fresh: false, answer: await keptAnswer(call.secretAnswer ? {} : call, key) }
}

function outcome(
  call: ClaimedCall,
  answer: IdempotentAnswer,
  replayed: boolean,
): IdempotentOutcome | Rejection {
  if (!replayed) return firstAnswer(answer)
  if (!call.secretAnswer) return replayOf(answer)
  const { createdId } = answer
  return reject(
    'conflict',
    'idempotency_key_used',
    `The idempotency key was used already${createdId === undefined ? '' : ` and created ${createdId}`}; its secret is shown only once`,
  )
}

function runningIn(app: Parts): Map<string, Running> {
  let running = runningByHandler.get(app.commands)
  if (!running) {
    running = new Map()
    runningByHandler.set(app.commands, running)
  }
  return running
}
