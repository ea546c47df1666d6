// @module-tag once: its subject is the same whatever holds the log
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { nkeys } from 'nats'
import { describe, expect, test } from 'vitest'
import { Nats, type NatsAccess } from '../../../infrastructure/messaging/nats/connection.ts'
import {
  INTEGRATION_STREAM,
  JetStreamIntegrationEvents,
} from '../../../infrastructure/messaging/nats/integration-events.ts'
import { JetStreamWorkQueue, WORK_STREAM } from '../../../infrastructure/messaging/nats/work-queue.ts'
import { authorityFile, serverCertificate, strangersCertificate } from '../../support/certificates.ts'
import { natsCanBeKilled, startNatsWith } from '../../support/nats.ts'
import { freePort } from '../../support/server-process.ts'
import { withDeadlinesOfTheProduct } from '../../support/technical-deadlines.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'
import { until } from '../../support/workbench.ts'

const SILENT = { info: () => undefined, warn: () => undefined }
const NONE: NatsAccess = { nkeySeed: null, creds: null, ca: null, cert: null, key: null }
const seedOf = (pair: { getSeed(): Uint8Array }) => Buffer.from(pair.getSeed()).toString()

describe.runIf(natsCanBeKilled)('a NATS server that demands', () => {
  const folder = temporaryDirectory()

  /** Lets in who has `access`, and nobody without it. */
  async function expectDemanded(settings: string, access: NatsAccess, others: readonly NatsAccess[]) {
    const server = await startNatsWith(settings)
    try {
      // a server that misses a certificate says nothing
      await withDeadlinesOfTheProduct(async () => {
        const refused = [NONE, ...others].map((other) =>
          expect(Nats.open([server.url], SILENT, other)).rejects.toThrow(/^NATS at 127\.0\.0\.1:\d+: /),
        )
        await Promise.all(refused)
      })
      const nats = await Nats.open([server.url], SILENT, access)
      const queue = new JetStreamWorkQueue(nats)
      expect(await queue.offer([{ processManager: 'p', kind: 'k' }])).toBe(true)
      await nats.close()
    } finally {
      await server.stop()
    }
  }

  test('an nkey gets it', async () => {
    const [user, stranger] = [nkeys.createUser(), nkeys.createUser()]
    await expectDemanded(
      `authorization { users: [ { nkey: ${user.getPublicKey()} } ] }`,
      { ...NONE, nkeySeed: seedOf(user) },
      [{ ...NONE, nkeySeed: seedOf(stranger) }],
    )
  })

  test('a JWT of an account of its operator gets the one in a creds file', async () => {
    const [operator, system, account, user] = [
      nkeys.createOperator(),
      nkeys.createAccount(),
      nkeys.createAccount(),
      nkeys.createUser(),
    ]
    const part = (value: object | Uint8Array) =>
      Buffer.from(value instanceof Uint8Array ? value : JSON.stringify(value)).toString('base64url')
    const jwt = (
      issuer: ReturnType<typeof nkeys.createUser>,
      subject: typeof issuer,
      type: string,
      claims = {},
    ) => {
      const content = [
        part({ typ: 'JWT', alg: 'ed25519-nkey' }),
        part({
          jti: type,
          iat: 1_700_000_000,
          iss: issuer.getPublicKey(),
          name: type,
          sub: subject.getPublicKey(),
          nats: { ...claims, type, version: 2 },
        }),
      ].join('.')
      return `${content}.${part(issuer.sign(Buffer.from(content)))}`
    }
    const unlimited = { subs: -1, data: -1, payload: -1 }
    const limits = { ...unlimited, imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1 }
    const jetStream = { mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 }
    const settings = `
      operator: ${jwt(operator, operator, 'operator', { system_account: system.getPublicKey() })}
      system_account: ${system.getPublicKey()}
      resolver: MEMORY
      resolver_preload: {
        ${system.getPublicKey()}: ${jwt(operator, system, 'account', { limits })}
        ${account.getPublicKey()}: ${jwt(operator, account, 'account', { limits: { ...limits, ...jetStream } })}
      }`
    const credsOf = (issuer: typeof account) =>
      [
        `-----BEGIN NATS USER JWT-----\n${jwt(issuer, user, 'user', unlimited)}\n------END NATS USER JWT------`,
        `-----BEGIN USER NKEY SEED-----\n${seedOf(user)}\n------END USER NKEY SEED------`,
      ].join('\n\n')
    await expectDemanded(settings, { ...NONE, creds: credsOf(account) }, [
      { ...NONE, creds: credsOf(nkeys.createAccount()) },
    ])
  })

  // the others are let in by what they show, in the same way
  test('a client certificate gets it, when its own is vouched for', { tags: 'long' }, async () => {
    const server = serverCertificate(['localhost'])
    for (const kind of ['cert', 'key'] as const) await writeFile(join(folder, kind), server[kind])
    const settings = `tls {
      cert_file: "${join(folder, 'cert')}", key_file: "${join(folder, 'key')}"
      ca_file: "${authorityFile()}", verify: true
    }`
    const ca = await readFile(authorityFile(), 'utf8')
    const client = serverCertificate(['client'])
    await expectDemanded(settings, { ...NONE, ca, ...client }, [
      { ...NONE, ca },
      { ...NONE, ...client },
      { ...NONE, ca, ...strangersCertificate(['client']) },
    ])
  })
})

// nats-work-queue has the same streams on one server
test.runIf(natsCanBeKilled)(
  'a cluster keeps the replicas of streams that are asked for',
  { tags: 'long' },
  async () => {
    const routes = await Promise.all([1, 2, 3].map(() => freePort()))
    const servers = await Promise.all(
      routes.map((port, n) =>
        startNatsWith(`
        server_name: n${n}
        cluster { name: c, listen: "127.0.0.1:${port}", routes: [${routes.map((to) => `"nats://127.0.0.1:${to}"`).join(', ')}] }`),
      ),
    )
    try {
      const urls = servers.map(({ url }) => url)
      // a leader is elected first
      const tries: Nats[] = []
      await withDeadlinesOfTheProduct(() =>
        until(() =>
          Nats.open(urls, SILENT).then(
            (nats) => tries.push(nats) > 0,
            () => false,
          ),
        ),
      )
      const nats = tries[0]!
      await until(() => new JetStreamWorkQueue(nats, 3).offer([{ processManager: 'p', kind: 'k' }]))
      await new JetStreamIntegrationEvents(nats, 3).create()
      const manager = await nats.connection.jetstreamManager()
      for (const stream of [WORK_STREAM, INTEGRATION_STREAM]) {
        expect((await manager.streams.info(stream)).config.num_replicas).toBe(3)
      }
      await nats.close()
    } finally {
      await Promise.all(servers.map((server) => server.stop()))
    }
  },
)
