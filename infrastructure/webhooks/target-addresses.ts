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
      const mapped = parsed instanceof ipaddr.IPv6 && parsed.isIPv4MappedAddress() && prefix >= 96
      return mapped ? [parsed.toIPv4Address(), prefix - 96] : [parsed, prefix]
    })
  }

  /** @param address as the resolver gives it; an IPv4 address in the clothes of IPv6 counts as what it is. */
  has(address: string): boolean {
    if (!ipaddr.isValid(address)) return false
    const parsed = ipaddr.process(address)
    return this.#ranges.some((range) => isIn(parsed, range)) || isPublic(parsed)
  }
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
