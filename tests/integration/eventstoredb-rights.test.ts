import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { EventStoreDBClient } from '@eventstore/db-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { LOG_START } from '../../application/ports/event-log.ts'
import { openEventStoreEventLog } from '../../infrastructure/event-store/eventstoredb/eventstoredb-event-log.ts'
import { cli } from '../support/cli.ts'
import { type EventStoreNode, eventStoreProgram, startEventStoreOn } from '../support/eventstoredb-node.ts'
import { until } from '../support/workbench.ts'

const run = promisify(execFile)
const hasOpenssl = await run('openssl', ['version']).then(
  () => true,
  () => false,
)
const possible = hasOpenssl && (await eventStoreProgram()) !== null
const ADMIN_PASSWORD = 'changed-Adm1n'
const PASSWORD = 'service-Passw0rd'

const grant = (env: Record<string, string>) => cli(['events', 'grant', 'compstream', '--json'], { env })

/** As docs/deployment.md has it: TLS by a CA of one's own, a user that is no administrator, rights by the command. */
describe.skipIf(!possible)('EventStoreDB with TLS and users', () => {
  let directory: string
  let ca: string
  let node: EventStoreNode

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'compstream-rights-'))
    await certificates()
    node = await startEventStoreOn(join(directory, 'db'), {
      env: {
        EVENTSTORE_INSECURE: 'false',
        EVENTSTORE_CERTIFICATE_FILE: join(directory, 'node.crt'),
        EVENTSTORE_CERTIFICATE_PRIVATE_KEY_FILE: join(directory, 'node.key'),
        EVENTSTORE_TRUSTED_ROOT_CERTIFICATES_PATH: join(directory, 'ca'),
        EVENTSTORE_DEFAULT_ADMIN_PASSWORD: ADMIN_PASSWORD,
        EVENTSTORE_DEFAULT_OPS_PASSWORD: 'changed-0ps',
      },
    })
    for (const user of ['compstream', 'somebody']) await createUser(user)
    const addressFile = join(directory, 'admin')
    await writeFile(addressFile, `${address('admin', ADMIN_PASSWORD)}\n`)
    const { code, json } = await grant({ EVENTSTORE_ADMIN_URL_FILE: addressFile })
    expect([code, json()]).toEqual([0, { user: 'compstream', rights: 'read, append' }])
  })
  afterAll(async () => {
    await node?.stop()
    await rm(directory, { recursive: true, force: true, maxRetries: 5 })
  })

  async function certificates(): Promise<void> {
    await mkdir(join(directory, 'ca'))
    ca = join(directory, 'ca/ca.crt')
    const extensions = 'subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n'
    await writeFile(join(directory, 'extensions'), extensions)
    const openssl = (line: string) => run('openssl', line.split(' '), { cwd: directory })
    await openssl('req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca/ca.crt -subj /CN=tests -days 2')
    await openssl('req -newkey rsa:2048 -nodes -keyout node.key -out node.csr -subj /CN=eventstoredb-node')
    await openssl(
      'x509 -req -in node.csr -CA ca/ca.crt -CAkey ca.key -CAcreateserial -out node.crt -days 2 -extfile extensions',
    )
  }

  function address(user: string, password: string, trusted = ca): string {
    return `esdb://${user}:${password}@127.0.0.1:${node.port}?tlsCAFile=${trusted}`
  }

  /** What the page does with curl. Right after the start the server has no users yet. */
  async function createUser(loginName: string): Promise<void> {
    const options = {
      method: 'POST',
      auth: `admin:${ADMIN_PASSWORD}`,
      ca: await readFile(ca),
      headers: { 'Content-Type': 'application/json' },
    }
    const body = JSON.stringify({ loginName, fullName: loginName, password: PASSWORD, groups: [] })
    const post = () =>
      new Promise<number | undefined>((done, fail) => {
        const sent = request(`https://127.0.0.1:${node.port}/users/`, options, (answer) => {
          answer.resume()
          answer.once('end', () => done(answer.statusCode))
        })
        sent.once('error', fail)
        sent.end(body)
      })
    await until(async () => (await post()) === 201)
  }

  const event = () => ({ type: 'Happened', data: '{"n":1}', metadata: '{}' })

  test('the user appends and reads, and finds nothing of the server in the log', async () => {
    const log = await openEventStoreEventLog({ url: address('compstream', PASSWORD) })
    try {
      expect(await log.head()).toBe(LOG_START)
      expect((await log.readAll({ after: LOG_START, maxCount: 10 })).events).toEqual([])
      const { position } = await log.append('thing-1', -1, [event(), event()])
      expect(await log.head()).toBe(position)
      const { events } = await log.readAll({ after: LOG_START, maxCount: 10 })
      expect(events.map(({ stream, revision }) => [stream, revision])).toEqual([
        ['thing-1', 0],
        ['thing-1', 1],
      ])
      expect(await log.readStream('thing-1')).toEqual(events)
    } finally {
      await log.close()
    }
  }, 30_000)

  test('the user neither deletes nor cuts a stream, and nobody else reads or appends', async () => {
    const own = EventStoreDBClient.connectionString(address('compstream', PASSWORD))
    await expect(own.deleteStream('thing-1')).rejects.toMatchObject({ type: 'access-denied' })
    await expect(own.tombstoneStream('thing-1')).rejects.toMatchObject({ type: 'access-denied' })
    await expect(own.setStreamMetadata('thing-1', { maxCount: 1 })).rejects.toMatchObject({
      type: 'access-denied',
    })
    await own.dispose()
    await expect(openEventStoreEventLog({ url: address('somebody', PASSWORD) })).rejects.toThrow(
      'access is denied to this user',
    )
  }, 30_000)

  test('a wrong password, and a server by another CA, are refused in one line that quotes no secret', async () => {
    await run(
      'openssl',
      'req -x509 -newkey rsa:2048 -nodes -keyout other.key -out other.crt -subj /CN=x'.split(' '),
      { cwd: directory },
    )
    for (const url of [
      address('compstream', 'hunter2hunter2'),
      address('compstream', PASSWORD, join(directory, 'other.crt')),
    ]) {
      const refusal = await openEventStoreEventLog({ url, openingPatienceMs: 500 }).then(
        () => 'it was opened',
        (error: Error) => error.message,
      )
      expect(refusal).toMatch(/^EventStoreDB at 127\.0\.0\.1:\d+: [^\n]+$/)
      expect(refusal).not.toContain('hunter2')
      expect(refusal).not.toContain(PASSWORD)
    }
  })

  test('rights that cannot be given are refused in one line that quotes no secret', async () => {
    for (const [url, why] of [
      [address('admin', 'hunter2hunter2'), 'the user or the password is wrong'],
      [address('compstream', PASSWORD), 'access is denied to this user'],
      [`${address('admin', ADMIN_PASSWORD)}&keepAliveInterval=hunter2`, 'option keepAliveInterval must be'],
      [`esdb://admin:hunter2@${ADMIN_PASSWORD}@host`, 'is not of the form'],
    ] as const) {
      const { code, stderr } = await grant({ EVENTSTORE_ADMIN_URL: url })
      expect(code).toBe(1)
      expect(JSON.parse(stderr).message).toMatch(/^EventStoreDB at [^\n]+$/)
      expect(stderr).toContain(why)
      for (const secret of ['hunter2', PASSWORD, ADMIN_PASSWORD]) expect(stderr).not.toContain(secret)
    }
  })
})
