import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { existsSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { isIPv4 } from 'node:net'
import { join, resolve } from 'node:path'

/**
 * Certificates of an authority of the tests' own, made without any program beside Node, which has none that makes them:
 * a few fields of X.509 in DER (RFC 5280).
 */

/** PEM texts. */
export interface Certificate {
  readonly cert: string
  readonly key: string
}

const FOLDER = resolve('node_modules', '.cache')
const AUTHORITY = 'authority of compstream tests'

/** The certificate of the authority, a PEM file: what servers of the tests have to trust. */
export function authorityFile(): string {
  const { cert } = authority()
  const file = join(FOLDER, 'test-authority.crt')
  if (!existsSync(file)) {
    const own = ownFile(file, cert)
    renameSync(own, file)
  }
  return file
}

/** A certificate of the authority for a server. @param names host names and IPv4 addresses. */
export function serverCertificate(names: readonly string[]): Certificate {
  return made({ subject: 'server of a test', names, issuer: AUTHORITY, issuerKey: authority().key })
}

/** A certificate that nobody vouches for. */
export function strangersCertificate(names: readonly string[]): Certificate {
  return made({ subject: 'stranger', names, issuer: 'stranger', issuerKey: null })
}

/** A certificate of an authority that stands below the one that is trusted, without that one's own. */
export function unchainedCertificate(names: readonly string[]): Certificate {
  const between = 'authority in between'
  const { key } = made({ subject: between, names: null, issuer: AUTHORITY, issuerKey: authority().key })
  return made({ subject: 'server of a test', names, issuer: between, issuerKey: key })
}

/** A certificate of the authority whose time, in years, is not now, or whose key is too weak. */
export function faultyCertificate(
  names: readonly string[],
  fault: { readonly years?: readonly [number, number]; readonly key?: GeneratedKeys },
): Certificate {
  const { key } = authority()
  return made({ subject: 'server of a test', names, issuer: AUTHORITY, issuerKey: key, ...fault })
}

/** Made once for all processes of all test runs here: whoever links the file first has made it. */
function authority(): Certificate {
  const file = join(FOLDER, 'test-authority.json')
  if (!existsSync(file)) {
    const whole = made({ subject: AUTHORITY, names: null, issuer: AUTHORITY, issuerKey: null })
    const own = ownFile(file, JSON.stringify(whole))
    try {
      linkSync(own, file)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    } finally {
      rmSync(own)
    }
  }
  return JSON.parse(readFileSync(file, 'utf8')) as Certificate
}

/** A whole file beside one that others may be reading. */
function ownFile(file: string, content: string): string {
  mkdirSync(FOLDER, { recursive: true })
  const own = `${file}.${randomBytes(6).toString('hex')}`
  writeFileSync(own, content, { mode: 0o600 })
  return own
}

type GeneratedKeys = Readonly<Record<'publicKey' | 'privateKey', KeyObject>>

interface Wanted {
  readonly subject: string
  /** Of a server; null for an authority. */
  readonly names: readonly string[] | null
  readonly issuer: string
  /** PEM; null where it vouches for itself. */
  readonly issuerKey: string | KeyObject | null
  /** First and last, from its beginning to its beginning; default a century. */
  readonly years?: readonly [number, number]
  /** Default ones of P-256. */
  readonly key?: GeneratedKeys
}

function made({ subject, names, issuer, issuerKey, years = [2020, 2120], key }: Wanted): Certificate {
  const { publicKey, privateKey } = key ?? generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const [from, to] = years.map((year) => time(`${year}0101000000Z`)) as [Buffer, Buffer]
  const algorithm = sequence(objectId('1.2.840.10045.4.3.2'))
  const extensions = [
    extension('2.5.29.19', sequence(...(names === null ? [boolean()] : [])), true),
    ...(names === null ? [] : [extension('2.5.29.17', sequence(...names.map(alternativeName)), false)]),
  ]
  const content = sequence(
    tagged(0xa0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([1]), randomBytes(15)])),
    algorithm,
    nameOf(issuer),
    sequence(from, to),
    nameOf(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    tagged(0xa3, sequence(...extensions)),
  )
  const signature = sign('sha256', content, issuerKey ?? privateKey)
  const whole = sequence(content, algorithm, tagged(0x03, Buffer.from([0]), signature))
  const lines = whole
    .toString('base64')
    .match(/.{1,64}/g)!
    .join('\n')
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}

function tagged(tag: number, ...contents: readonly Buffer[]): Buffer {
  const content = Buffer.concat(contents)
  const { length } = content
  const head = length < 0x80 ? [tag, length] : [tag, 0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from(head), content])
}

function sequence(...contents: readonly Buffer[]): Buffer {
  return tagged(0x30, ...contents)
}

function integer(bytes: Buffer): Buffer {
  return tagged(0x02, bytes)
}

function boolean(): Buffer {
  return tagged(0x01, Buffer.from([0xff]))
}

function time(generalized: string): Buffer {
  return tagged(0x18, Buffer.from(generalized))
}

function objectId(dotted: string): Buffer {
  const [first, second, ...others] = dotted.split('.').map(Number) as [number, number, ...number[]]
  return tagged(0x06, Buffer.from([first * 40 + second, ...others.flatMap(base128)]))
}

function base128(value: number): number[] {
  const digits = [value & 0x7f]
  for (let rest = value >> 7; rest > 0; rest >>= 7) digits.unshift((rest & 0x7f) | 0x80)
  return digits
}

/** A name that is a common name alone. */
function nameOf(commonName: string): Buffer {
  const attribute = sequence(objectId('2.5.4.3'), tagged(0x0c, Buffer.from(commonName)))
  return sequence(tagged(0x31, attribute))
}

function extension(id: string, content: Buffer, isCritical: boolean): Buffer {
  return sequence(objectId(id), ...(isCritical ? [boolean()] : []), tagged(0x04, content))
}

function alternativeName(name: string): Buffer {
  return isIPv4(name)
    ? tagged(0x87, Buffer.from(name.split('.').map(Number)))
    : tagged(0x82, Buffer.from(name))
}
