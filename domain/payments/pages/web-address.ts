/** A partner's own web address: `pay.partner.example`, with or without `https://`, a port and a path. */

/** The place of the token in a link format. */
export const TOKEN_PLACE = '{token}'
/** Characters of a token or an id in a link, at the most: what is longer need not be searched. */
const LONGEST_TOKEN = 64

/** Its base: `https://host[:port][/path]`, without a trailing slash. */
export function webBase(webAddress: string): string {
  const { origin, pathname } = new URL(webAddress.includes('://') ? webAddress : `https://${webAddress}`)
  return `${origin}${pathname.replace(/\/+$/, '')}`
}

/** Its host, with the port where that is not 443: what browsers send as `Host`. */
export function hostOfWebAddress(webAddress: string): string {
  return new URL(webBase(webAddress)).host
}

/** What paths and queries are written with (RFC 3986), but for the apostrophe: many programs end links there. */
const WRITTEN = '(?:[\\w.~!$&()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*'
/** The form of link formats: the token once, no fragment, nothing that browsers would escape. */
export const LINK_FORMAT = new RegExp(`^${WRITTEN}\\{token\\}${WRITTEN}$`)

/** Whether browsers ask for links of a {@link LINK_FORMAT} as they were issued: they resolve `.` and `..` between slashes. */
export function staysAsItIs(linkFormat: string): boolean {
  const address = pageAddress('https://page', linkFormat, '0')
  if (!URL.canParse(address)) return false
  const { origin, pathname, search } = new URL(address)
  return `${origin}${pathname}${search}` === address
}

/** The address of a page there. @param linkFormat has {@link TOKEN_PLACE} in it. */
export function pageAddress(webAddress: string, linkFormat: string, token: string): string {
  return `${webBase(webAddress)}${pathOf(linkFormat)}`.replace(TOKEN_PLACE, () => token)
}

/** Path and query of its pages, with {@link TOKEN_PLACE} in them. */
export function pagePattern(webAddress: string, linkFormat: string): string {
  return `${webBase(webAddress)}${pathOf(linkFormat)}`.slice(new URL(webBase(webAddress)).origin.length)
}

/**
 * The token in the path and query of a page; null where they do not fit. Parameters may follow, as mailers append them.
 */
export function tokenIn(pattern: string, pathAndQuery: string): string | null {
  const at = pattern.indexOf(TOKEN_PLACE)
  const [before, after] = [pattern.slice(0, at), pattern.slice(at + TOKEN_PLACE.length)]
  if (!pathAndQuery.startsWith(before)) return null
  const more = pattern.includes('?') ? '&' : '[?]'
  // what follows the token may look like a part of it
  const rest = new RegExp(`^([\\w-]{1,${LONGEST_TOKEN}})${after.replaceAll(/\W/g, '\\$&')}(?:${more}|$)`)
  return rest.exec(pathAndQuery.slice(before.length))?.[1] ?? null
}

function pathOf(linkFormat: string): string {
  return linkFormat.replace(/^\/*/, '/')
}
