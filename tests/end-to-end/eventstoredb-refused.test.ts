// @module-tag once: its starts are refused
// @module-tag long: contract/eventstoredb-security refuses the same addresses
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { findEventStore } from '../support/eventstoredb.ts'
import {
  hasOpenssl,
  type SecuredEventStore,
  startSecuredEventStore,
} from '../support/eventstoredb-secured.ts'

const source = await findEventStore()
const path = source?.kind === 'program' && (await hasOpenssl()) ? source.path : null

describe('a service whose event log cannot be used does not start', () => {
  let database: TestDatabase
  let dataDir: string
  let secured: SecuredEventStore | undefined

  beforeAll(async () => {
    database = await createTestDatabase()
    dataDir = await mkdtemp(join(tmpdir(), 'compstream-'))
    if (path !== null) secured = await startSecuredEventStore(path)
  })
  afterAll(async () => {
    await secured?.stop()
    await database?.drop()
    await rm(dataDir, { recursive: true, force: true })
  })

  /** The one line that a start ends with. */
  async function refusal(eventStoreUrl: string): Promise<string> {
    const child = spawn(process.execPath, ['dist/main.js'], {
      env: {
        PATH: process.env.PATH,
        DATA_DIR: dataDir,
        DATABASE_URL: database.url,
        EVENTSTORE_URL: eventStoreUrl,
        MASTER_KEY: randomBytes(32).toString('base64'),
        OPERATOR_TOKEN: randomBytes(24).toString('base64url'),
        LOG_LEVEL: 'error',
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += String(text)))
    const [code] = (await once(child, 'close')) as [number]
    expect(code).toBe(1)
    expect(output).not.toContain('Pa55word')
    expect(output).toMatch(/^[^\n]+\n$/)
    return output
  }

  test('nobody there', async () => {
    expect(await refusal('esdb://user:Pa55word@127.0.0.1:1?tls=false')).toContain(
      'EventStoreDB at 127.0.0.1:1: ',
    )
  })

  test('somebody else there', async () => {
    const server = createServer((_, answer) => answer.end('hello')).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    expect(await refusal(`esdb://127.0.0.1:${port}?tls=false`)).toContain(
      `EventStoreDB at 127.0.0.1:${port}: `,
    )
    server.close()
  })

  test.each([
    'mysql://user:Pa55word@host',
    'esdb://user:Pa55word@host:port',
    'esdb://user:Pa55word@host?a=b',
  ])('no proper address: %s', async (url) => {
    expect(await refusal(url)).toMatch(/^EVENTSTORE_URL[: ]/)
  })

  test.skipIf(path === null)('a wrong password, and a certificate of another authority', async () => {
    expect(await refusal(secured!.urlFor('admin', 'Pa55word that is wrong'))).toMatch(
      /the user or the password is wrong/,
    )
    const url = secured!.urlFor('admin', secured!.adminPassword)
    const other = url.replace(/tlsCaFile=.*/, `tlsCaFile=${encodeURIComponent(secured!.otherCaFile)}`)
    expect(await refusal(other)).toMatch(/certificate/)
  })
})
