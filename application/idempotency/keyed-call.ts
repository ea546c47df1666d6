import { type Rejection, reject } from '../../domain/kernel/rejection.ts'
import type { Application } from '../application.ts'
import type { CommandContext } from '../command-handling/command-context.ts'

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
}

/** What a request is answered with. */
export interface IdempotentAnswer {
  /** HTTP status; 400 and above is a failure, which is not kept. */
  readonly status: number
  readonly body: unknown
  /** What the log keeps of the body, see `restore`. */
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

const VISIBLE_ASCII = /^[\x21-\x7e]{1,255}$/

/** True for a usable `Idempotency-Key`: 1 to 255 visible ASCII characters. */
export function isIdempotencyKey(value: unknown): value is string {
  return typeof value === 'string' && VISIBLE_ASCII.test(value)
}

/** Keyed fingerprints of a call: of caller, operation and key together, and of its body. */
export function fingerprintsOf(
  { personalData }: Pick<Application, 'personalData'>,
  { caller, operation, key, requestHash }: KeyedCall,
): { readonly ofKey: string; readonly ofBody: string } {
  const ofKey = personalData.fingerprint('idempotency', `${caller}|${operation}|${key}`)
  // bound to the key: equal bodies of others, or under other keys, do not show
  return { ofKey, ofBody: personalData.fingerprint('idempotent_request', `${ofKey}|${requestHash}`) }
}

/** The first answer, given now. */
export function firstAnswer({ status, body }: IdempotentAnswer): IdempotentOutcome {
  return { replayed: false, status, body }
}

/** The first answer again. */
export function replayOf({ status, body }: IdempotentAnswer): IdempotentOutcome {
  return { replayed: true, status: status === 201 ? 200 : status, body }
}

export function keyReused(): Rejection {
  return reject('conflict', 'idempotency_key_reused', 'The idempotency key was used for another request body')
}
