import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { addressOf, type EventStoreServer, PLAIN_NODE } from './eventstoredb.ts'
import { freePort, serverProcess } from './server-process.ts'

const run = promisify(execFile)

/** A node with TLS, a certificate of the test's own authority, and users. */
export interface SecuredEventStore extends Omit<EventStoreServer, 'url'> {
  /** `localhost:port`. */
  readonly host: string
  readonly adminPassword: string
  readonly caFile: string
  /** Of an authority that has nothing to do with the node. */
  readonly otherCaFile: string
  /** A connection string for a user. */
  urlFor(user: string, password: string): string
  /** Makes a user without any group. */
  addUser(user: string, password: string): Promise<void>
}

/** Whether certificates can be made here. */
export async function hasOpenssl(): Promise<boolean> {
  return run('openssl', ['version']).then(
    () => true,
    () => false,
  )
}

/** @param path of the server's program. */
export async function startSecuredEventStore(path: string): Promise<SecuredEventStore> {
  const folder = await mkdtemp(join(tmpdir(), 'compstream-secured-'))
  const port = await freePort()
  const at = (name: string) => join(folder, name)
  await mkdir(at('authority'))
  const caFile = at('authority/ca.crt')
  const otherCaFile = at('other.crt')
  await makeAuthority(at('ca.key'), caFile)
  await makeAuthority(at('other.key'), otherCaFile)
  await makeCertificate(folder, at('ca.key'), caFile)
  const adminPassword = 'Pa55word of the administrator'
  const settings = [
    ...[...PLAIN_NODE.filter((one) => one !== '--insecure'), ...(await addressOf(port))],
    ...['--certificate-file', at('node.crt'), '--certificate-private-key-file', at('node.key')],
    ...['--trusted-root-certificates-path', at('authority'), '--db', at('db'), '--log', at('log')],
  ]
  const node = serverProcess(path, settings, { EVENTSTORE_DEFAULT_ADMIN_PASSWORD: adminPassword })
  const ca = await readFile(caFile)
  /** As administrator. @returns the status. */
  const call = (method: string, resource: string, body?: unknown): Promise<number> =>
    new Promise((resolve, reject) => {
      const options = { host: '127.0.0.1', port, path: resource, method, ca, auth: `admin:${adminPassword}` }
      const sent = request({ ...options, headers: { 'content-type': 'application/json' } }, (answer) => {
        answer.resume()
        resolve(answer.statusCode ?? 0)
      })
      sent.once('error', reject)
      sent.end(body === undefined ? undefined : JSON.stringify(body))
    })
  // a new node makes its users last
  const start = () =>
    node.start(() =>
      call('GET', '/users').then(
        (status) => status === 200,
        () => false,
      ),
    )
  const stop = async () => {
    await node.kill()
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  try {
    await start()
  } catch (error) {
    await stop()
    throw error
  }
  return {
    ...node,
    host: `localhost:${port}`,
    adminPassword,
    caFile,
    otherCaFile,
    restart: start,
    stop,
    urlFor: (user, password) =>
      `esdb://${encodeURIComponent(user)}:${encodeURIComponent(password)}@localhost:${port}` +
      `?tls=true&tlsCaFile=${encodeURIComponent(caFile)}`,
    async addUser(user, password) {
      const status = await call('POST', '/users', { loginName: user, fullName: user, groups: [], password })
      if (status >= 300) throw new Error(`the user is not made: ${status}`)
    },
  }
}

async function openssl(...args: string[]): Promise<void> {
  await run('openssl', args)
}

async function makeAuthority(keyFile: string, file: string): Promise<void> {
  await openssl(
    ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', keyFile, '-out', file, '-days', '2'],
    ...['-subj', '/CN=authority of a test', '-addext', 'basicConstraints=critical,CA:TRUE'],
    ...['-addext', 'keyUsage=critical,keyCertSign,cRLSign'],
  )
}

/** `node.crt` and `node.key` in a folder. */
async function makeCertificate(folder: string, caKeyFile: string, caFile: string): Promise<void> {
  const at = (name: string) => join(folder, name)
  await openssl(
    ...['req', '-newkey', 'rsa:2048', '-nodes', '-keyout', at('node.key'), '-out', at('node.csr')],
    ...['-subj', '/CN=eventstoredb-node'],
  )
  await writeFile(
    at('extensions'),
    'subjectAltName=IP:127.0.0.1,DNS:localhost\nextendedKeyUsage=serverAuth,clientAuth\n' +
      'keyUsage=digitalSignature,keyEncipherment\n',
  )
  await openssl(
    ...['x509', '-req', '-in', at('node.csr'), '-CA', caFile, '-CAkey', caKeyFile, '-CAcreateserial'],
    ...['-days', '2', '-extfile', at('extensions'), '-out', at('node.crt')],
  )
}
