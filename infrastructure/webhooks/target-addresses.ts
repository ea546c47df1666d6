import ipaddr from 'ipaddr.js'
import type { AddressRange } from '../config/config.ts'

type Parsed = ipaddr.IPv4 | ipaddr.IPv6

/** All that is routed on the Internet; ranges in it that are not are known by name. */
const GLOBAL_IPV6: [ipaddr.IPv6, number] = [ipaddr.IPv6.parse('2000::'), 3]
/** Public by its number, and yet a service for the machines of one cloud alone. */
const CLOUD_SERVICES: readonly [ipaddr.IPv4, number][] = [[ipaddr.IPv4.parse('168.63.129.16'), 32]]
/** The port numbers that browsers refuse too: of services that are none of the web's (fetch.spec.whatwg.org). */
const REFUSED_PORTS: ReadonlySet<number> = new Set([
  ...[
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103,
    104,
  ],
  ...[
    109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515,
    526,
  ],
  ...[
    530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659,
    4045,
  ],
  ...[4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080],
])

/** Characters of an address at the most. */
const LONGEST_URL = 2048

/** Which addresses of the network webhooks may be sent to: public ones, and those of ranges that the operator allows. */
export class AllowedAddresses {
  readonly #ranges: readonly [Parsed, number][]

  constructor(ranges: readonly AddressRange[]) {
    this.#ranges = ranges.map(({ address, prefix }) => {
      const parsed = ipaddr.parse(address)
      // all mapped addresses are a notation, and no range of IPv4
      const mapped = parsed instanceof ipaddr.IPv6 && parsed.isIPv4MappedAddress() && prefix > 96
      return mapped ? [parsed.toIPv4Address(), prefix - 96] : [parsed, prefix]
    })
  }

  /**
   * @param address as the resolver gives it; an IPv4 address in the clothes of IPv6 counts as what it is, and one that is
   *   reached by way of an IPv6 address has to be allowed, too.
   */
  has(address: string): boolean {
    if (!ipaddr.isValid(address)) return false
    const parsed = ipaddr.process(address)
    const allowed = [parsed, ...embeddedIn(parsed)]
    return allowed.every((one) => this.#ranges.some((range) => isIn(one, range)) || isPublic(one))
  }
}

/** Prefixes whose addresses are reached by way of IPv4, or translated into it. */
const EMBEDDING = {
  compatible: ipaddr.IPv6.parseCIDR('::/96'),
  translated: ipaddr.IPv6.parseCIDR('::ffff:0:0:0/96'),
  nat64: ipaddr.IPv6.parseCIDR('64:ff9b::/96'),
  localNat64: ipaddr.IPv6.parseCIDR('64:ff9b:1::/48'),
  sixToFour: ipaddr.IPv6.parseCIDR('2002::/16'),
  teredo: ipaddr.IPv6.parseCIDR('2001::/32'),
} as const
/** The bytes of an IPv4 address behind a prefix of 48, 56, 64 and 96 bits; a suffix may be ignored (RFC 6052). */
const BEHIND_LOCAL_PREFIX = [
  [6, 7, 9, 10],
  [7, 9, 10, 11],
  [9, 10, 11, 12],
  [12, 13, 14, 15],
] as const

/** The IPv4 addresses that packets to an IPv6 address pass, or end at; where it can be read in several ways, all. */
function embeddedIn(address: Parsed): readonly ipaddr.IPv4[] {
  if (address instanceof ipaddr.IPv4) return []
  const bytes = address.toByteArray()
  const at = (places: readonly number[]) => new ipaddr.IPv4(places.map((place) => bytes[place]!))
  const last = [12, 13, 14, 15]
  const { compatible, translated, nat64, localNat64, sixToFour, teredo } = EMBEDDING
  if (isTunnel(address) || address.match(nat64) || address.match(translated)) return [at(last)]
  // `::` and `::1` are no IPv4 addresses
  if (address.match(compatible)) return bytes.slice(12, 15).some(Boolean) || bytes[15]! > 1 ? [at(last)] : []
  if (address.match(sixToFour)) return [at([2, 3, 4, 5])]
  // its server, and its client, which stands there inverted (RFC 4380)
  if (address.match(teredo)) {
    return [at([4, 5, 6, 7]), new ipaddr.IPv4(last.map((place) => bytes[place]! ^ 0xff))]
  }
  if (!address.match(localNat64)) return []
  // an address that begins with 0 is none to send to
  return BEHIND_LOCAL_PREFIX.filter(([first]) => bytes[first] !== 0).map(at)
}

function isPublic(address: Parsed): boolean {
  if (address.range() !== 'unicast') return false
  if (address instanceof ipaddr.IPv4) return !CLOUD_SERVICES.some((range) => isIn(address, range))
  return isIn(address, GLOBAL_IPV6) && !isTunnel(address)
}

/** ISATAP: any prefix, and behind it an IPv4 address that a router of the network unpacks (RFC 5214). */
function isTunnel({ parts }: ipaddr.IPv6): boolean {
  return (parts[4]! & 0xfdff) === 0 && parts[5] === 0x5efe
}

function isIn(address: Parsed, [range, prefix]: [Parsed, number]): boolean {
  return address.kind() === range.kind() && address.match(range as never, prefix)
}

/** Why the form of an address is none of a target, in words that follow `url `; null when it can be one. */
export function formFault(url: string): string | null {
  if (url.length > LONGEST_URL) return `has more than ${LONGEST_URL} characters`
  if (!URL.canParse(url)) return 'is no URL'
  const { protocol, username, password, port, hostname } = new URL(url)
  if (protocol !== 'https:') return 'must begin with https://'
  if (username !== '' || password !== '') return 'must not hold a user name or a password'
  if (hostOf(hostname) === '') return 'names no host'
  if (port !== '' && REFUSED_PORTS.has(Number(port))) return `names port ${port}, which is none for webhooks`
  return null
}

/** A host without the brackets of an IPv6 address and without the dot that ends a whole name. */
export function hostOf(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '')
}

/** Whether a host is an address itself: whatever its notation was, URLs hold the usual one. */
export function isAddress(host: string): boolean {
  return ipaddr.isValid(host)
}
