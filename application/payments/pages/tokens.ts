import { hash, timingSafeEqual } from 'node:crypto'
import { isId } from '../../../domain/kernel/ids.ts'
import { paymentSession } from '../../../domain/payments/sessions/payment-session.ts'
import type { PaymentSession } from '../../../domain/payments/sessions/payment-session-status.ts'
import type { Application } from '../../commands/application.ts'
import type { Reads } from '../../commands/command-handler.ts'

/** Bytes of a token that nobody can guess. */
const SECRET_BYTES = 32
const PREFIX_LENGTH = 8
const TOKEN = /^[A-Za-z0-9_-]{16}[A-Za-z0-9_-]{43}$/

/**
 * What opens the page of a session, once handed out: the session's id and 32 random bytes, base64url. By the id the
 * session is found without an index; only a hash of the token is stored, and its bearer may pay.
 */
export interface SessionToken {
  readonly token: string
  readonly prefix: string
  /** SHA-256, hexadecimal. */
  readonly hash: string
}

export function newToken(sessionId: string, { randomness }: Pick<Application, 'randomness'>): SessionToken {
  const token = Buffer.from(`${sessionId}${randomness.hex(SECRET_BYTES)}`, 'hex').toString('base64url')
  return { token, prefix: token.slice(0, PREFIX_LENGTH), hash: hashOf(token) }
}

/** The session that a token opens; null for any other text. */
export async function sessionByToken({ commands }: Reads, token: string): Promise<PaymentSession | null> {
  const id = idInToken(token)
  if (id === null) return null
  const { state } = await commands.load(paymentSession, id)
  return state?.token_hash && isHashOf(state.token_hash, token) ? state : null
}

/** The id that a token names; null for any other text. */
export function idInToken(token: string): string | null {
  if (!TOKEN.test(token)) return null
  const id = Buffer.from(token, 'base64url').toString('hex').slice(0, 24)
  return isId(id) ? id : null
}

/** Whether a stored hash is that of a text. */
export function isHashOf(stored: string, text: string): boolean {
  return timingSafeEqual(Buffer.from(stored), Buffer.from(hashOf(text)))
}

/** SHA-256, hexadecimal: what is kept of a token, and of the client secret of an embedded session. */
export function hashOf(token: string): string {
  return hash('sha256', token, 'hex')
}
