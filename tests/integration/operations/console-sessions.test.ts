// @module-tag once
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Application } from '../../../application/commands/application.ts'
import { operators } from '../../../domain/access/operators.ts'
import { StoredConsoleSessions } from '../../../infrastructure/access/console-sessions.ts'
import { OperatorGate } from '../../../interfaces/http/bearer.ts'
import { RateLimiter } from '../../../interfaces/http/rate-limit.ts'
import { ConsoleAccess } from '../../../interfaces/operator-api/console/session.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'

const TOKEN = 'token-of-an-operator-that-counts'

let database: TestDatabase
let pool: pg.Pool
beforeAll(async () => {
  database = await createTestDatabase()
  pool = new pg.Pool({ connectionString: database.url })
})
afterAll(async () => {
  await pool?.end()
  await database?.drop()
})

/** A process of which an operator has a token. */
function processWith(token: string) {
  const refused: string[] = []
  // nobody is registered: the token of the setting alone counts
  const commands = { load: async () => ({ state: operators.initialState, revision: -1 }) }
  const register = { commands, clock: { now: () => 0 } } as unknown as Pick<Application, 'commands' | 'clock'>
  const known = new OperatorGate({
    firstToken: token,
    addresses: new RateLimiter(0),
    onRefused: ({ why }) => void refused.push(why),
  })
  const gate = {
    operatorOf: (presented: string) => known.operatorOf(register, presented),
    report: known.report.bind(known),
  }
  const sessions = new StoredConsoleSessions(pool, { now: () => 0 })
  return { access: new ConsoleAccess(sessions, gate, new RateLimiter(0)), refused }
}

function exchange(cookie: string) {
  const request = new IncomingMessage(new Socket())
  request.headers.cookie = cookie
  return { request, response: new ServerResponse(request) }
}

describe('a session of the console', () => {
  test('ends in every process with the first request after its token counts no longer, and says so', async () => {
    const before = processWith(TOKEN)
    const signIn = exchange('')
    await before.access.signIn(signIn.request, signIn.response, TOKEN)
    const cookie = String(signIn.response.getHeader('Set-Cookie')).split(';')[0]!
    const asked = exchange(cookie)
    expect(await before.access.sessionOf(asked.request, asked.response)).toMatchObject({ token: TOKEN })

    const after = processWith('another-token-of-the-same-operator')
    const refused = exchange(cookie)
    expect(await after.access.sessionOf(refused.request, refused.response)).toBeNull()
    expect(refused.response.getHeader('Set-Cookie')).toContain('Max-Age=0')
    expect(after.refused).toEqual(['session that has ended'])
    const again = exchange(cookie)
    expect(await before.access.sessionOf(again.request, again.response)).toBeNull()
  })

  test('leaves neither its secret nor its token in the database', async () => {
    const { access } = processWith(TOKEN)
    const { request, response } = exchange('')
    await access.signIn(request, response, TOKEN)
    const secret = /=([\w-]{43});/.exec(String(response.getHeader('Set-Cookie')))![1]!
    const { rows } = await pool.query(
      'SELECT s::text AS row, sealed_token FROM runtime.console_sessions AS s',
    )
    expect(rows).toHaveLength(1)
    for (const hidden of [secret, TOKEN]) {
      expect(rows[0].row).not.toContain(hidden)
      expect(rows[0].sealed_token.includes(hidden)).toBe(false)
      expect(rows[0].row).not.toContain(Buffer.from(hidden).toString('hex'))
    }
  })
})
