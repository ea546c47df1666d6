/** A partner's own web address: `pay.partner.example`, with or without `https://`, a port and a path. */

/** The place of the token in a link format. */
export const TOKEN_PLACE = '{token}'

/** Its base: `https://host[:port][/path]`, without a trailing slash. */
export function webBase(webAddress: string): string {
  const { origin, pathname } = new URL(webAddress.includes('://') ? webAddress : `https://${webAddress}`)
  return `${origin}${pathname.replace(/\/+$/, '')}`
}

/** Its host, with the port where that is not 443: what browsers send as `Host`. */
export function hostOfWebAddress(webAddress: string): string {
  return new URL(webBase(webAddress)).host
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
  const [token] = /^[\w-]*/.exec(pathAndQuery.slice(before.length))!
  const rest = pathAndQuery.slice(before.length + token.length)
  const more = pattern.includes('?') ? '&' : '?'
  const fits = rest === after || rest.startsWith(`${after}${more}`)
  return token !== '' && fits ? token : null
}

function pathOf(linkFormat: string): string {
  return linkFormat.replace(/^\/*/, '/')
}
