import { setTimeout as delay } from 'node:timers/promises'
import { type ApiClient, mayActFor, mayUseCarrier } from '../../domain/access/api-client.ts'
import { type FinancingSession, financingSession } from '../../domain/financing/financing-session.ts'
import { isId } from '../../domain/kernel/ids.ts'
import { type Rejection, reject } from '../../domain/kernel/rejection.ts'
import type { Application } from '../application.ts'
import { hashOf, newToken } from '../payment-sessions/tokens.ts'

type Scope = Pick<ApiClient, 'tenant_id' | 'environment' | 'carrier_ids' | 'employer_ids'>

/** The id of the session that a key of a tenant stands for. */
export function sessionIdOf(
  { personalData }: Pick<Application, 'personalData'>,
  { tenant_id, environment }: Pick<ApiClient, 'tenant_id' | 'environment'>,
  key: string,
): string {
  return personalData.fingerprint('financing_session', `${tenant_id}|${environment}|${key}`)
}

/** A session of an account, whatever the scope of the key; null where there is none. */
export async function ownSession(
  { commands }: Pick<Application, 'commands'>,
  { tenant_id, environment }: Pick<ApiClient, 'tenant_id' | 'environment'>,
  sessionId: string,
): Promise<FinancingSession | null> {
  const state = isId(sessionId) ? (await commands.load(financingSession, sessionId)).state : null
  return state?.tenant_id === tenant_id && state.environment === environment ? state : null
}

/** A session that a partner names: another account's is not found, one out of scope forbidden. */
export async function financingSessionOf(
  app: Pick<Application, 'commands'>,
  client: Scope,
  sessionId: string,
): Promise<FinancingSession | Rejection> {
  const state = await ownSession(app, client, sessionId)
  if (state) return refuseScope(client, state) ?? state
  return reject('not_found', 'financing_session_not_found', 'There is no such financing session')
}

/** Why a key may not see a session of its account. */
export function refuseScope(client: Scope, { employer_id, carrier_id }: FinancingSession): Rejection | null {
  if (mayActFor(client, employer_id) && mayUseCarrier(client, carrier_id)) return null
  const why = 'The financing session lies outside the scope of the key'
  return reject('forbidden', 'financing_session_out_of_scope', why)
}

/** Between two looks at what is under way, in real milliseconds. */
const LOOK_AGAIN_MS = 25

/** The session once nothing is under way any more; as it is when that takes long. @param mostMs real milliseconds. */
export async function onceSettled(
  { commands }: Pick<Application, 'commands'>,
  session: FinancingSession,
  isUnderWay: (session: FinancingSession) => boolean,
  mostMs: number,
): Promise<FinancingSession> {
  const deadline = performance.now() + mostMs
  let current = session
  while (isUnderWay(current) && performance.now() < deadline) {
    await delay(LOOK_AGAIN_MS)
    current = (await commands.load(financingSession, session.financing_session_id)).state!
  }
  return current
}

type FinancingToken = 'access' | 'checkout'

/**
 * A token of a session that is to be created, the same for whoever creates it. It lies encrypted in the vault; the log has
 * its hash.
 * @param kind `access` opens the page; by the id in it the session is found.
 */
export async function newTokenOf(
  app: Pick<Application, 'vault' | 'randomness'>,
  sessionId: string,
  kind: FinancingToken,
): Promise<{ readonly token: string; readonly hash: string }> {
  const token = await app.vault.getOrPut(placeOf(sessionId, kind), () =>
    kind === 'access' ? newToken(sessionId, app).token : `fct_${app.randomness.hex(32)}`,
  )
  return { token, hash: hashOf(token) }
}

/** A token of a session that is there: the same whenever it is asked for. @throws when the vault lost it. */
export async function tokenOf(
  { vault }: Pick<Application, 'vault'>,
  { financing_session_id }: Pick<FinancingSession, 'financing_session_id'>,
  kind: FinancingToken,
): Promise<string> {
  const token = await vault.get(placeOf(financing_session_id, kind))
  if (token === null)
    throw new Error(`The vault has no ${kind} token of financing session ${financing_session_id}`)
  return token
}

function placeOf(sessionId: string, kind: FinancingToken): string {
  return `financing-${kind}/${sessionId}`
}
