import { setTimeout as delay } from 'node:timers/promises'
import type { Rejection } from '../../../domain/kernel/rejection.ts'
import {
  type FinancingSession,
  financingSession,
} from '../../../domain/payments/financing/financing-session.ts'
import { type KeyScope, mayReach, ownedBy, stateOf } from '../../access/owned-by.ts'
import type { Application } from '../../commands/application.ts'
import type { Reads } from '../../commands/command-handler.ts'
import { hashOf, newToken } from '../pages/tokens.ts'

/** The id of the session that a key of a tenant stands for. */
export function sessionIdOf(
  { personalData }: Pick<Application, 'personalData'>,
  { tenant_id, environment }: Pick<KeyScope, 'tenant_id' | 'environment'>,
  key: string,
): string {
  return personalData.fingerprint('financing_session', `${tenant_id}|${environment}|${key}`)
}

/** A session that a partner names. */
export async function financingSessionOf(
  app: Reads,
  client: KeyScope,
  sessionId: string,
): Promise<FinancingSession | Rejection> {
  const session = await stateOf(app, financingSession, sessionId)
  return ownedBy(client, session, 'financing session', (one) => mayReach(client, one))
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
    current = (await commands.asOfNow().load(financingSession, session.financing_session_id)).state!
  }
  return current
}

type FinancingToken = 'access' | 'checkout'

/**
 * A token of a session that is to be created, the same in every attempt. It lies encrypted in the vault; the log has
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
