import type { Decider } from '../../domain/kernel/decider.ts'
import {
  type IdempotencyKey,
  type IdempotencyKeyCommand,
  idempotencyKey,
} from '../../domain/kernel/idempotency-key.ts'
import { isRejection, type Rejection, reject } from '../../domain/kernel/rejection.ts'
import { isAway } from '../ports/unavailable.ts'
import type { Application } from './application.ts'
import { type CommandContext, createdId } from './command-context.ts'
import type { Creation } from './command-handler.ts'
import { findable } from './found-by.ts'
import { requestHash } from './request-hash.ts'
import { isSecretGone } from './secret-gone.ts'
import type { Turns } from './turns.ts'

/** A request that may carry an idempotency key. */
export interface KeyedCall {
  /** The sender: client, credential, connection or operator. Keys of two callers never meet. */
  readonly caller: string
  /** What it asks for; one key may serve several operations. The same in every release. */
  readonly operation: string
  /** Null: it has none, and is carried out each time it comes. */
  readonly key: string | null
  /** What makes two requests the same: the body as it was sent, or a text that stands for it. */
  readonly sent: object | string
  /** Its command id is that of the work, unless the key has fixed another one before. */
  readonly context: CommandContext
}

/** What is done once per key. */
export interface KeyedWork<Prepared, State> {
  /**
   * Refuses the request, or finds what the work needs; nothing is stored by that.
   * @param context says `mayRepeat` where an earlier attempt may have stored something under its command id: that was
   *   accepted then, and must not be refused by what changed since.
   */
  readonly prepare?: ((context: CommandContext) => Promise<Prepared | Rejection>) | undefined
  /**
   * Every id derives from the context's command id, so that an attempt that crashed is finished by the next one, never
   * doubled. A rejection means that nothing stands of it: the key is free for any request again. Thrown errors leave a
   * key that was claimed to a retry of the same.
   */
  readonly run: (context: CommandContext, prepared: Prepared) => Promise<IdempotentAnswer | Rejection>
  /**
   * The one aggregate that it creates, by one append that must be the first of its stream: that is the claim of the key.
   * Absent: several streams, secrets, calls to the outside; the key is claimed in a stream of its own.
   */
  readonly creates?: {
    readonly decider: Decider<State, never>
    /** The first answer again, null where the first append does not tell it: then the work names what to keep (`stored`). */
    readonly answerOf: (
      created: Creation<State>,
    ) => IdempotentAnswer | null | Promise<IdempotentAnswer | null>
  }
  /** What it creates besides, where its id is known beforehand and tells the answer: none is kept with the key then. */
  readonly tells?:
    | {
        readonly decider: Decider<unknown, never>
        readonly idOf: (prepared: Prepared) => string
        /** The first answer again; null where what has the id is another request's. */
        readonly answerOf: (id: string) => Promise<IdempotentAnswer | null>
      }
    | undefined
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

/** What of the application this works with. */
type Parts = Pick<Application, 'commands' | 'personalData' | 'randomness' | 'log' | 'readModels'>

/** Keyed fingerprints of a call: of caller, operation and key together, and of its body. */
interface Fingerprints {
  readonly ofKey: string
  readonly ofBody: string
}

/** What became of a keyed call, by its own work (`fresh`) or by that of an earlier request with its key. */
type Performed = Rejection | { readonly fresh: boolean; readonly answer: IdempotentAnswer }

/** A call that this process performs at present. */
interface Running {
  readonly ofBody: string
  readonly performed: Promise<Performed>
}

const runningByTurns = new WeakMap<Turns, Map<string, Running>>()

/** Waits for another process that holds the key, in real milliseconds: about 2 seconds in all. */
const POLL_MS = [20, 40, 80, 160, 300, 600, 800] as const

/**
 * Carries out a request once per key. A stream whose id derives from the key is the claim, and its first append keeps the
 * fingerprint of the body: the stream of the aggregate that is created, or else one of the key. The same request again gets
 * the first answer. One call per key is under way in this process: the same sent meanwhile shares what becomes of it, and
 * another body waits, since the key is free for it when the first one is refused. Of attempts that ran beside each other,
 * because one was slow and taken for dead, the answer stored first counts.
 * @returns a rejection also when the key was used for another body, or when its answer was a secret.
 */
export async function oncePerKey<Prepared, State>(
  app: Parts,
  call: KeyedCall,
  work: KeyedWork<Prepared, State>,
): Promise<IdempotentOutcome | Rejection> {
  if (call.key === null) {
    const prepared = await work.prepare?.(call.context)
    if (isRejection(prepared)) return prepared
    const answer = await work.run(call.context, prepared as Prepared)
    return isRejection(answer) ? answer : outcomeOf(work, { fresh: true, answer })
  }
  const fingerprints = await fingerprintsOf(app, call)
  const { ofKey, ofBody } = fingerprints
  const running = runningIn(app.commands.turns)
  for (let other = running.get(ofKey); other; other = running.get(ofKey)) {
    if (other.ofBody === ofBody) return outcomeOf(work, await other.performed, true)
    await other.performed.catch(() => undefined)
  }
  const performed = perform(app, call, work, fingerprints)
  running.set(ofKey, { ofBody, performed })
  try {
    return outcomeOf(work, await performed)
  } finally {
    running.delete(ofKey)
  }
}

/** What an earlier request with the key, or one that is under way elsewhere, has begun. */
interface Begun {
  readonly isSame: boolean
  readonly commandId: string
  readonly createdId: string | undefined
  /** Null while it has none, and of another body. */
  readonly answer: IdempotentAnswer | null
}

async function perform<Prepared, State>(
  app: Parts,
  call: KeyedCall,
  work: KeyedWork<Prepared, State>,
  { ofKey, ofBody }: Fingerprints,
): Promise<Performed> {
  const context = findable(app, call.context, { idempotency_key: call.key })
  const { creates } = work
  // decided by the key's state alone: a key that was released is claimed again
  const decide = (...commands: IdempotencyKeyCommand[]) =>
    app.commands.execute(idempotencyKey, ofKey, commands, {
      ...context,
      commandId: app.randomness.commandId(),
    })
  let { commands } = app
  const loadKey = () => commands.load(idempotencyKey, ofKey)
  for (;;) {
    let begun = await look()
    // the claim may belong to a live request elsewhere; while this process is alone, only to a dead one
    for (const delay of creates || app.log.isExclusive ? [] : POLL_MS) {
      if (!begun?.isSame || begun.answer) break
      await new Promise((resolve) => setTimeout(resolve, delay))
      begun = await lookAgain()
    }
    if (begun && !begun.isSame) return keyReused(begun.createdId)
    if (begun?.answer) return { fresh: false, answer: begun.answer }
    if (!begun && context.unlessRepeated) throw context.unlessRepeated

    const command_id = begun?.commandId ?? (creates ? ofKey : context.commandId)
    let claim: NonNullable<IdempotencyKey['claimed']> = {
      fingerprint: ofKey,
      request_hash: ofBody,
      command_id,
    }
    const within = { ...context, commandId: command_id }
    let isClaimed = begun !== null
    let answer: IdempotentAnswer | Rejection
    try {
      const prepared = await work.prepare?.(isClaimed ? { ...within, mayRepeat: true } : within)
      if (isRejection(prepared)) answer = prepared
      else {
        if (!creates) {
          if (work.tells) claim = { ...claim, created_id: work.tells.idOf(prepared as Prepared) }
          const outcome = await decide({ type: 'Claim', data: claim })
          // another process was faster
          if (
            isRejection(outcome) ||
            outcome.state.answered ||
            outcome.state.claimed?.command_id !== command_id
          ) {
            commands = commands.asOfNow()
            continue
          }
          claim = outcome.state.claimed
          isClaimed = true
        }
        const keyed = isClaimed ? {} : { keyedRequest: { body_fingerprint: ofBody } }
        answer = await work.run({ ...within, mayRepeat: true, ...keyed }, prepared as Prepared)
      }
    } catch (error) {
      if (isClaimed || isAway(error) || !(await lookAgain())) throw error
      continue
    }
    if (isRejection(answer)) {
      // it may stand in the way of itself: the same request elsewhere has done meanwhile what this one asks for
      const meanwhile = await lookAgain()
      if (isClaimed ? meanwhile?.answer : meanwhile) continue
      if (isClaimed && !creates && !isSecretGone(answer)) {
        await decide({ type: 'Release', data: { fingerprint: ofKey, command_id } })
      }
      return answer
    }
    const { created_id: told } = claim
    const isTold = creates ? answer.stored === undefined : told !== undefined && told === answer.createdId
    if (isTold) return { fresh: true, answer }
    const { status, body, stored = body, createdId: created_id = null } = answer
    const kept = work.secretAnswer ? null : (stored ?? null)
    const keep = { type: 'Answer', data: { fingerprint: ofKey, status, body: kept, created_id } } as const
    // a slow attempt may find its key released by another one that was refused
    const answered = await decide(...(creates ? [] : [{ type: 'Claim', data: claim } as const]), keep)
    if (isRejection(answered) || answered.events.length > 0) return { fresh: true, answer }
    return { fresh: false, answer: (await keptAnswer(answered.state))! }
  }

  function lookAgain(): Promise<Begun | null> {
    commands = commands.asOfNow()
    return look()
  }

  async function look(): Promise<Begun | null> {
    if (creates) {
      const { decider } = creates
      const id = createdId({ commandId: ofKey }, decider)
      const created = await commands.creationOf(decider, id)
      if (!created) return null
      const isSame = created.keyedRequest?.body_fingerprint === ofBody
      const answer = isSame
        ? ((await creates.answerOf(created)) ?? (await keptAnswer((await loadKey()).state)))
        : null
      if (answer) await app.readModels.awaitProjections(decider, created.position)
      return { isSame, commandId: ofKey, createdId: id, answer }
    }
    const { state } = await loadKey()
    if (!state.claimed) return null
    const { request_hash, command_id: commandId, created_id: planned } = state.claimed
    const isSame = request_hash === ofBody
    const { tells } = work
    const told = tells && planned !== undefined ? await commands.load(tells.decider, planned) : null
    const id = state.answered?.created_id ?? (told && told.revision >= 0 ? planned : undefined)
    let answer = isSame ? await keptAnswer(state) : null
    if (isSame && !answer && tells && id !== undefined) {
      answer = await tells.answerOf(id)
      if (answer) await app.readModels.awaitProjections(tells.decider, told!.position)
    }
    return { isSame, commandId, createdId: id, answer }
  }

  async function keptAnswer({ answered }: IdempotencyKey): Promise<IdempotentAnswer | null> {
    if (!answered) return null
    const { status, created_id } = answered
    const body = work.restore ? await work.restore(answered.body) : answered.body
    return { status, body, ...(created_id !== null && { createdId: created_id }) }
  }
}

async function fingerprintsOf(
  { personalData }: Pick<Application, 'personalData'>,
  { caller, operation, key, sent }: KeyedCall,
): Promise<Fingerprints> {
  const hash = typeof sent === 'string' ? sent : await requestHash(sent)
  const ofKey = personalData.fingerprint('idempotency', `${caller}|${operation}|${key}`)
  // bound to the key: equal bodies of others, or under other keys, do not show
  return { ofKey, ofBody: personalData.fingerprint('idempotent_request', `${ofKey}|${hash}`) }
}

/** @param isShared the work was another request's. */
function outcomeOf(
  { secretAnswer }: { readonly secretAnswer?: boolean },
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
function keyReused(createdId?: string): Rejection {
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
