import { isRejection, type Rejection, reject } from '../../domain/kernel/rejection.ts'
import { type Checkout, checkoutSettings, type Proof } from '../../domain/payments/pages/checkout-settings.ts'
import { hostOfWebAddress, tokenIn, webBase } from '../../domain/payments/pages/web-address.ts'
import type { Application } from '../commands/application.ts'
import type { CommandContext } from '../commands/command-context.ts'
import { holderOf, reserveFor, webHostReservation } from '../commands/reservations.ts'
import { within } from '../commands/verbs.ts'
import { OutsideWebFailed } from '../ports/outside-web.ts'
import { hostedPage } from './hosted-pages.ts'
import { embeddedSession } from './pages/embedded.ts'

/** Of a file that proves an address, at the most. */
const MOST_BYTES = 4 * 1024

/** What proves that a web address is a tenant's: either of the two, for as long as pages are issued there. */
export interface Challenge {
  /** A TXT record. */
  readonly dns: { readonly name: string; readonly value: string }
  /** A file that is served there. */
  readonly file: { readonly url: string; readonly content: string }
}

/** Why a look found no proof, for each way. */
export interface Look {
  readonly provenBy: 'dns' | 'file' | null
  readonly dns: string | null
  readonly file: string | null
}

/** A look, and whether anybody answered: where nobody did, it says nothing of the address. */
export interface LookOutcome {
  readonly look: Look
  readonly isAnswered: boolean
}

/** What is to be published at a web address: the same for the same tenant and host, whenever it is asked for. */
export function challengeOf(
  { personalData }: Pick<Application, 'personalData'>,
  tenantId: string,
  webAddress: string,
): Challenge {
  const host = hostOfWebAddress(webAddress)
  const { hostname, origin } = new URL(webBase(webAddress))
  const value = `compstream-verification=${personalData.fingerprint('web_address', `${tenantId} ${host}`)}`
  return {
    dns: { name: `_compstream.${hostname}`, value },
    file: { url: `${origin}/.well-known/compstream-verification.txt`, content: value },
  }
}

/** Looks for the proof of a web address. @throws the reason of the signal. */
export async function lookAt(
  app: Pick<Application, 'outsideWeb' | 'personalData'>,
  tenantId: string,
  webAddress: string,
  signal: AbortSignal,
): Promise<LookOutcome> {
  const challenge = challengeOf(app, tenantId, webAddress)
  const [dns, file] = await Promise.all([
    faultOf(async () => {
      const records = await app.outsideWeb.textRecords(challenge.dns.name)
      if (records.length === 0) return 'There is no such TXT record'
      return records.includes(challenge.dns.value) ? null : 'No TXT record has the value'
    }),
    faultOf(async () => {
      const { statusCode, body } = await app.outsideWeb.get(challenge.file.url, MOST_BYTES, signal)
      if (statusCode !== 200) return `The address answered ${statusCode}`
      return body.toString().trim() === challenge.file.content ? null : 'The file has another content'
    }),
  ])
  const provenBy = dns.fault === null ? 'dns' : file.fault === null ? 'file' : null
  return {
    look: { provenBy, dns: dns.fault, file: file.fault },
    isAnswered: dns.isAnswered || file.isAnswered,
  }
}

async function faultOf(look: () => Promise<string | null>) {
  try {
    return { fault: await look(), isAnswered: true }
  } catch (error) {
    if (error instanceof OutsideWebFailed) return { fault: error.message, isAnswered: false }
    throw error
  }
}

/**
 * Looks at the web address of a tenant, or takes the operator's word for it, and records what it found.
 * @param byOperator the operator vouches for it: nobody looks.
 * @param ownHosts of the service itself, which belong to no tenant.
 */
export async function verifyWebAddress(
  app: Application,
  tenantId: string,
  { byOperator, ownHosts }: { readonly byOperator: boolean; readonly ownHosts: readonly string[] },
  context: CommandContext,
): Promise<{ readonly checkout: Checkout; readonly look: Look | null } | Rejection> {
  const { settings, web_address_proof: before } = (await app.commands.load(checkoutSettings, tenantId)).state
  const { web_address } = settings
  if (web_address === null) {
    return reject('conflict', 'no_web_address', 'The checkout settings have no web_address')
  }
  if (ownHosts.includes(hostOfWebAddress(web_address))) {
    return reject('conflict', 'own_web_address', 'The web_address is that of the service itself')
  }
  const signal = new AbortController().signal
  const look = byOperator ? null : (await lookAt(app, tenantId, web_address, signal)).look
  const provenBy = look === null ? 'operator' : look.provenBy
  const checkout = await recordLook(app, tenantId, web_address, { before, provenBy }, context)
  return isRejection(checkout) ? checkout : { checkout, look }
}

/**
 * Records what a look found. An address has one tenant at a time: the one that proved it, until it no longer can.
 * @param found.before the proof that there was when the look began.
 */
export async function recordLook(
  app: Application,
  tenantId: string,
  webAddress: string,
  { before, provenBy }: { readonly before: Proof | null; readonly provenBy: Proof | null },
  context: CommandContext,
): Promise<Checkout | Rejection> {
  const scoped = within(context, { tenant_id: tenantId })
  if (provenBy !== null) {
    const host = hostOfWebAddress(webAddress)
    const value = webHostReservation(app.personalData, host)
    const hasLost = ({ web_address_proof, settings }: Checkout) =>
      web_address_proof === null || hostOfWebAddress(settings.web_address!) !== host
    const holder = await reserveFor(app, value, { decider: checkoutSettings, id: tenantId, hasLost }, scoped)
    if (holder !== tenantId) {
      return reject('conflict', 'web_address_taken', 'The web_address is verified for another tenant')
    }
  }
  const command = { type: 'RecordLook', tenantId, webAddress, before, provenBy, at: app.clock.now() } as const
  const outcome = await app.commands.execute(checkoutSettings, tenantId, command, scoped)
  return isRejection(outcome) ? outcome : outcome.state
}

/** Whose pages alone a host shows, and where it shows them. */
export interface TenantHost {
  readonly tenantId: string
  /** What may be the token in the path and query of a page, by all link formats that there were. */
  readonly tokensIn: (pathAndQuery: string) => readonly string[]
}

/** The tenant that a host was verified for, whether it still is or not: links to it are out. Null: no tenant's. */
export async function tenantOfHost(
  app: Pick<Application, 'commands' | 'personalData'>,
  host: string,
): Promise<TenantHost | null> {
  const tenantId = await holderOf(app, webHostReservation(app.personalData, host))
  if (tenantId === null) return null
  const { page_patterns } = (await app.commands.load(checkoutSettings, tenantId)).state
  return {
    tenantId,
    tokensIn(pathAndQuery) {
      const found = page_patterns.map((pattern) => tokenIn(pattern, pathAndQuery))
      return [...new Set(found.filter((token) => token !== null))]
    },
  }
}

/**
 * The tenant whose page it is; null when there is none.
 * @param at `pay`: by the id of a link, or the token of a session; `embed`: by the id of an embedded session.
 */
export async function tenantOfPage(
  app: Pick<Application, 'commands'>,
  at: 'pay' | 'embed',
  idOrToken: string,
): Promise<string | null> {
  if (at === 'embed') return (await embeddedSession(app, idOrToken))?.tenant_id ?? null
  return (await hostedPage(app, idOrToken))?.of.tenant_id ?? null
}
