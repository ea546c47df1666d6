import {
  type IdempotencyKey,
  type IdempotencyKeyCommand,
  idempotencyKey,
} from '../../domain/kernel/idempotency-key.ts'
import { isRejection, type Rejection } from '../../domain/kernel/rejection.ts'
import type { Application } from './application.ts'
import type { CommandContext } from './command-context.ts'
import {
  type Fingerprints,
  type IdempotentAnswer,
  type IdempotentOutcome,
  type KeyedCall,
  keyReused,
  oncePerKey,
  type Performed,
} from './keyed-call.ts'
import { isSecretGone } from './secret-gone.ts'

/** A call whose key is claimed before its work begins. */
export interface ClaimedCall<Prepared> extends KeyedCall {
  /**
   * Command id that a new claim fixes, where the request is part of another one that holds it already;
   * default a random one. A key that was claimed before keeps the id of that claim.
   */
  readonly commandId?: string
  /**
   * Refuses the request, or finds what the work needs, before its key is claimed; unless the key was answered already.
   * @param context says `mayRepeat` where an earlier attempt may have stored something under its command id: that was
   *   accepted then, and must not be refused by what changed since.
   */
  readonly prepare?: (context: CommandContext) => Promise<Prepared | Rejection>
}

/** What of the application this works with. */
type Parts = Pick<Application, 'commands' | 'personalData' | 'randomness' | 'log'>
type Run<Prepared> = (context: CommandContext, prepared: Prepared) => Promise<IdempotentAnswer | Rejection>

/** Waits for another process that holds the key, in real milliseconds: about 2 seconds in all. */
const POLL_MS = [20, 40, 80, 160, 300, 600, 800] as const

/**
 * Runs a request once per key, for work that is more than one append: several streams, secrets, calls to the outside.
 * The claim of the key fixes a command id; `run` derives every id from it, so that an attempt that crashed or failed
 * half way is finished by the next one, never doubled. The same request again is answered with the first answer;
 * parallel ones share one run. Of attempts that ran beside each other, because one was slow and taken for dead, the
 * answer stored first counts.
 * @param run the work. A rejection means that nothing stands of it: the key is free for any request again. Thrown
 *   errors leave it to a retry of the same.
 * @returns a rejection also when the key was used for another request, or when its answer was a secret.
 */
export function runClaimed<Prepared>(
  app: Parts,
  call: ClaimedCall<Prepared>,
  run: Run<Prepared>,
): Promise<IdempotentOutcome | Rejection> {
  return oncePerKey(app, call, (fingerprints) => attempt(app, call, fingerprints, run))
}

async function attempt<Prepared>(
  app: Parts,
  call: ClaimedCall<Prepared>,
  { ofKey, ofBody }: Fingerprints,
  run: Run<Prepared>,
): Promise<Performed> {
  const again = () => attempt(app, call, { ofKey, ofBody }, run)
  // decided by the key's state alone: a key that was released is claimed again
  const decide = (...commands: IdempotencyKeyCommand[]) =>
    app.commands.execute(idempotencyKey, ofKey, commands, {
      ...call.context,
      commandId: app.randomness.commandId(),
    })
  const claimAs = (command_id: string) =>
    ({ type: 'Claim', data: { fingerprint: ofKey, request_hash: ofBody, command_id } }) as const
  /** Frees the key of a request that was refused in all its attempts. */
  const refused = async (why: Rejection, command_id: string): Promise<Rejection> => {
    if (!isSecretGone(why)) await decide({ type: 'Release', data: { fingerprint: ofKey, command_id } })
    return why
  }

  let key = (await app.commands.load(idempotencyKey, ofKey)).state
  const isAnothers = () => key.claimed !== null && key.claimed.request_hash !== ofBody
  // the claim may belong to a live request elsewhere; while this process is alone, only to a dead one
  if (key.claimed && !key.answered && !isAnothers() && !app.log.isExclusive) {
    key = await answeredElsewhere(app, ofKey, key)
  }
  if (isAnothers()) return keyReused(key.answered?.created_id ?? undefined)
  if (key.answered) return replay(call, key)

  const claimedAs = key.claimed?.command_id ?? null
  if (claimedAs === null && call.context.unlessRepeated) throw call.context.unlessRepeated
  const fixed = claimedAs ?? call.commandId
  const commandId = fixed ?? app.randomness.commandId()
  const prepared = await call.prepare?.({ ...call.context, commandId, mayRepeat: fixed !== undefined })
  if (isRejection(prepared)) {
    if (claimedAs !== null) return refused(prepared, claimedAs)
    // it may stand in the way of itself: the same request elsewhere has done meanwhile what this one asks for
    const isClaimed = (await app.commands.asOfNow().load(idempotencyKey, ofKey)).state.claimed !== null
    return isClaimed ? again() : prepared
  }

  const claim = await decide(claimAs(commandId))
  if (isRejection(claim)) return claim
  // another process was faster
  if (claim.state.answered || claim.state.claimed?.command_id !== commandId) return again()

  const answer = await run({ ...call.context, commandId, mayRepeat: true }, prepared as Prepared)
  if (isRejection(answer)) return refused(answer, commandId)
  // a slow attempt may find its key released by another one that was refused
  const answered = await decide(
    claimAs(commandId),
    answerCommand(ofKey, call.secretAnswer ? { ...answer, stored: null } : answer),
  )
  const isFirst = isRejection(answered) || answered.events.length > 0
  return isFirst ? { fresh: true, answer } : replay(call, answered.state)
}

/** The command that keeps the answer of a key, unless it has one. */
export function answerCommand(
  fingerprint: string,
  { status, body, stored = body, createdId }: IdempotentAnswer,
): Extract<IdempotencyKeyCommand, { readonly type: 'Answer' }> {
  return {
    type: 'Answer',
    data: { fingerprint, status, body: stored ?? null, created_id: createdId ?? null },
  }
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

/** Polls the key's stream until the holder has answered or released it, or is taken for dead. */
async function answeredElsewhere(
  app: Parts,
  ofKey: string,
  claimed: IdempotencyKey,
): Promise<IdempotencyKey> {
  let state = claimed
  for (const delay of POLL_MS) {
    await new Promise((resolve) => setTimeout(resolve, delay))
    state = (await app.commands.asOfNow().load(idempotencyKey, ofKey)).state
    if (state.answered || state.claimed?.command_id !== claimed.claimed?.command_id) break
  }
  return state
}

async function replay(call: KeyedCall, key: IdempotencyKey): Promise<Performed> {
  return { fresh: false, answer: await keptAnswer(call, key) }
}
