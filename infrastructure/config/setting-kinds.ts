import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { isIP, isIPv4 } from 'node:net'
import { resolve } from 'node:path'
import { z } from 'zod'
import { verifierOf } from '../../application/audit/checkpoint-note.ts'
import { readConnectionString } from '../event-store/eventstoredb/connection-string.ts'

/** A range of IP addresses in CIDR notation. */
export interface AddressRange {
  readonly address: string
  /** Leading bits that count, 0 to 32 or 128. */
  readonly prefix: number
  readonly family: 'ipv4' | 'ipv6'
}

/** How a variable is read, beside its form. */
interface Reading {
  /** Whether an error may quote the value; not where it may hold a secret. */
  readonly quoted?: boolean
}

/**
 * Schema of one environment variable. The message of an issue says what follows the variable's name; `params.expected`
 * is {@link expected}.
 * @param expected what a good value looks like.
 * @param read returns undefined for a bad value.
 */
function setting<T>(
  expected: string,
  read: (text: string) => T | undefined,
  { quoted = false }: Reading = {},
) {
  return z.string().transform((text, context): T => {
    const value = read(text)
    if (value !== undefined) return value
    const found = quoted ? ` is ${JSON.stringify(shortened(text))},` : ':'
    context.addIssue({ code: 'custom', message: `${found} expected ${expected}`, params: { expected } })
    return z.NEVER
  })
}

function shortened(value: string): string {
  return value.length > 60 ? `${value.slice(0, 60)}…` : value
}

/** One of a few words. */
export function word<const Word extends string>(words: readonly [Word, ...Word[]]) {
  const expected = words.length === 1 ? words[0] : `one of ${words.join(', ')}`
  return setting(expected, (text) => words.find((candidate) => candidate === text), { quoted: true })
}

/** A whole number in a range. */
export function wholeNumber(least: number, most: number) {
  const expected = `a whole number from ${least} to ${most}`
  return setting(expected, (text) => inRange(text, /^\d{1,9}$/, least, most), { quoted: true })
}

/** A number in a range, decimals allowed. */
export function decimalNumber(least: number, most: number) {
  const form = /^\d{1,9}(\.\d{1,6})?$/
  const expected = `a number from ${least} to ${most}`
  return setting(expected, (text) => inRange(text, form, least, most), { quoted: true })
}

function inRange(text: string, form: RegExp, least: number, most: number): number | undefined {
  const value = form.test(text) ? Number(text) : Number.NaN
  return value >= least && value <= most ? value : undefined
}

/** `true` or `false`. */
export const flag = () => word(['true', 'false']).transform((text) => text === 'true')

/** Any text of bounded length without line breaks. */
export function text(expected: string, form: RegExp) {
  return setting(expected, (value) => (form.test(value) ? value : undefined))
}

/** An address of one of a few protocols (without the colon). */
export function address(expected: string, protocols: readonly string[]) {
  return setting(expected, (value) => (parsedUrl(value, protocols) ? value : undefined))
}

/** A connection string of EventStoreDB: several hosts with ports are no URL. */
export function eventStoreAddress() {
  const form = /^(esdb|kurrentdb)(\+discover)?:\/\/\S+$/
  return text('an EventStoreDB address such as esdb://host:2113 or esdb://one:2113,two:2113', form).transform(
    (value, context) => {
      try {
        readConnectionString(value)
        return value
      } catch (error) {
        context.addIssue({ code: 'custom', message: `: ${(error as Error).message}` })
        return z.NEVER
      }
    },
  )
}

/** An http(s) base address; the answer has no trailing slash. */
export function baseUrl() {
  return setting('an http or https address without query and fragment', readBaseUrl)
}

/** A base address or the word `off`. */
export function baseUrlOrOff() {
  return setting('an http or https address without query and fragment, or off', (value) =>
    value === 'off' ? ('off' as const) : readBaseUrl(value),
  )
}

function readBaseUrl(value: string): string | undefined {
  const url = parsedUrl(value, ['http', 'https'])
  if (!url?.hostname || url.search || url.hash || url.username || url.password || /[?#]/.test(value)) return
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`
}

function parsedUrl(value: string, protocols: readonly string[]): URL | null {
  if (/\s/.test(value) || !URL.canParse(value)) return null
  const url = new URL(value)
  // `http:foo` parses, but is no address
  return protocols.includes(url.protocol.slice(0, -1)) && /^[a-z+]+:\/\//i.test(value) ? url : null
}

/** A comma list; blanks around items are ignored. */
export function list<T>(expected: string, read: (item: string) => T | undefined, reading?: Reading) {
  return setting(expected, (value) => readList(value, read), reading)
}

function readList<T>(value: string, read: (item: string) => T | undefined): readonly T[] | undefined {
  const items = value.split(',').map((item) => read(item.trim()))
  return items.every((item) => item !== undefined) ? items : undefined
}

/** Verifier keys of witnesses, in the form of C2SP `signed-note`. A private key that is given by mistake is not quoted. */
export function witnessKeys() {
  return list(
    'a comma list of verifier keys of witnesses, such as witness.example/w1+86d9bb3c+BJ…, each an Ed25519 key of type 4',
    (item) => (verifierOf(item)?.isWitness ? item : undefined),
  )
}

/** Origins as browsers send them, for example `https://app.example.com`. */
export function origins() {
  const read = (item: string) => {
    const url = parsedUrl(item, ['http', 'https'])
    return url && url.origin === item.toLowerCase() ? url.origin : undefined
  }
  return list('a comma list of origins such as https://app.example.com', read, { quoted: true })
}

/** Address ranges in CIDR notation. */
export function addressRanges() {
  const read = (item: string): AddressRange | undefined => {
    const [address, prefix, ...rest] = item.split('/')
    if (!address || !prefix || rest.length > 0 || isIP(address) === 0) return
    const family = isIPv4(address) ? 'ipv4' : 'ipv6'
    const bits = inRange(prefix, /^\d{1,3}$/, 0, family === 'ipv4' ? 32 : 128)
    return bits === undefined ? undefined : { address, prefix: bits, family }
  }
  return list('a comma list of address ranges such as 10.0.0.0/8 or fd00::/8', read, { quoted: true })
}

/** Addresses of name servers, `address` or `address:port`. */
export function nameServers() {
  const read = (item: string) => {
    const [, host = '', port = ''] = /^(\[[^\]]+\]|[^:]+)(?::(\d{1,5}))?$/.exec(item) ?? []
    const isAddress = isIP(host.replace(/^\[(.+)\]$/, '$1')) !== 0
    return isAddress && Number(port) <= 65_535 ? item : undefined
  }
  return list('a comma list of name servers such as 10.0.0.2 or 127.0.0.1:5353', read, { quoted: true })
}

/** Loopback, link-local and private addresses of both families. */
export const LOCAL_RANGES: readonly AddressRange[] = [
  { address: '127.0.0.0', prefix: 8, family: 'ipv4' },
  { address: '10.0.0.0', prefix: 8, family: 'ipv4' },
  { address: '172.16.0.0', prefix: 12, family: 'ipv4' },
  { address: '192.168.0.0', prefix: 16, family: 'ipv4' },
  { address: '169.254.0.0', prefix: 16, family: 'ipv4' },
  { address: '::1', prefix: 128, family: 'ipv6' },
  { address: 'fc00::', prefix: 7, family: 'ipv6' },
  { address: 'fe80::', prefix: 10, family: 'ipv6' },
]

/** A bindable host: an IP address or a name. */
export function host() {
  const name = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/i
  const read = (value: string) => {
    const bare = /^\[.+\]$/.test(value) ? value.slice(1, -1) : value
    if (isIP(bare) !== 0) return bare
    // digits and dots only, and no address: a mistyped one
    return name.test(value) && !/^[\d.]+$/.test(value) ? value : undefined
  }
  return setting('an IP address or a host name', read, { quoted: true })
}

/** A moment in ISO 8601 with a time zone; the answer is in milliseconds since the epoch. */
export function moment() {
  const iso = z.iso.datetime({ offset: true })
  const read = (value: string) => (iso.safeParse(value).success ? Date.parse(value) : undefined)
  return setting('a time such as 2026-04-27T00:00:00Z', read, { quoted: true })
}

/** Keys of 32 bytes in base64, a comma list. */
export function keys() {
  return list(KEYS_EXPECTED, readKey)
}

const KEYS_EXPECTED =
  '32 bytes in base64 (44 characters), or a comma list of such keys with the current one first'

/** Reads what {@link keys} takes. @returns undefined when it is something else. */
export function parseKeys(value: string): readonly Buffer[] | undefined {
  return readList(value, readKey)
}

function readKey(item: string): Buffer | undefined {
  if (!/^[A-Za-z0-9+/_-]{43}=?$/.test(item)) return
  const key = Buffer.from(item, 'base64')
  return key.length === 32 ? key : undefined
}

/** The form of an operator token: what fits an Authorization header and is not trivially guessed. */
export const OPERATOR_TOKEN = /^[\x21-\x7e]{8,512}$/
export const OPERATOR_TOKEN_EXPECTED = '8 to 512 visible ASCII characters without blanks'

/** The path of a directory; the answer is absolute. */
export function directory() {
  return setting('the path of a directory', (value) => resolve(value))
}

/** The path of a file with certificates; the answer is their PEM text. */
export function certificateFile() {
  return z.string().transform((path, context): string => {
    const refuse = (message: string) => {
      context.addIssue({ code: 'custom', message })
      return z.NEVER
    }
    let pem: string
    try {
      pem = readFileSync(path, 'utf8')
    } catch {
      return refuse(' cannot be read: expected the path of a file with PEM certificates')
    }
    const blocks = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g) ?? []
    try {
      for (const block of blocks) new X509Certificate(block)
      if (blocks.length > 0) return blocks.join('\n')
    } catch {
      // said below
    }
    return refuse(' holds no valid certificate: expected PEM certificates')
  })
}

/** The path of a file with a private key; the answer is its PEM text. */
export function privateKeyFile() {
  return setting('the path of a file with a PEM private key without a passphrase', (path) => {
    try {
      const pem = readFileSync(path, 'utf8')
      createPrivateKey(pem)
      return pem
    } catch {
      return undefined
    }
  })
}

/** A routing number of an American bank. */
export function routingNumber() {
  return setting('a routing number of 9 digits with a valid check digit', (value) => {
    if (!/^\d{9}$/.test(value)) return
    const weighted = [...value].map((digit, index) => Number(digit) * [3, 7, 1][index % 3]!)
    return weighted.reduce((sum, part) => sum + part, 0) % 10 === 0 ? value : undefined
  })
}
