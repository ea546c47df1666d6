import { z } from 'zod'
import { setCheckout } from '../../../application/payments/pages/checkout-settings.ts'
import { challengeOf, verifyWebAddress } from '../../../application/payments/web-addresses.ts'
import { tenant } from '../../../domain/access/tenant.ts'
import {
  type Checkout,
  checkoutSettings,
  DEFAULT_CHECKOUT,
} from '../../../domain/payments/pages/checkout-settings.ts'
import { LINK_FORMAT, staysAsItIs } from '../../../domain/payments/pages/web-address.ts'
import { accepted } from '../../endpoints/endpoint.ts'
import { email, id, ofOne, optional, text, withDefault, wrongType } from '../../endpoints/fields.ts'
import { changeOf, repeating } from '../../endpoints/repeating.ts'
import { contextOf, endpoint, loaded, type OperatorHost } from '../host/api.ts'

/** Names and IPv4 addresses of hosts, with a port. The last label of a name begins with a letter: else it is a number. */
const host = (alphanumeric: string, letter: string) => {
  const label = `${alphanumeric}(?:[${alphanumeric.slice(1, -1)}-]*${alphanumeric})?`
  const name = `(?:${label}\\.)*${letter}(?:[${alphanumeric.slice(1, -1)}-]*${alphanumeric})?`
  return `(?:${name}|${BYTE}(?:\\.${BYTE}){3})${PORT}`
}
const BYTE = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)'
const PORT = '(?::(?:[1-9]\\d{0,3}|[1-5]\\d{4}|6[0-4]\\d{3}|65[0-4]\\d\\d|655[0-2]\\d|6553[0-5]))?'
const WEB_ADDRESS = new RegExp(`^(?:https://)?${host('[A-Za-z0-9]', '[A-Za-z]')}(?:/[\\w.~/-]*)?$`)
/** An origin as browsers send it; of this machine also without TLS, for development. */
const ORIGIN = new RegExp(
  `^(?:https://${host('[a-z0-9]', '[a-z]')}|http://(?:localhost|127\\.0\\.0\\.1)${PORT})$`,
)
/** Origins that may embed a checkout, at the most: they all stand in a header of every page. */
const MOST_ORIGINS = 20

/** Labels that begin with `xn--` may still be none. */
function isAddress(text: string): boolean {
  return URL.canParse(text.includes('://') ? text : `https://${text}`)
}

const WEB_ADDRESS_FORM = 'must be a host such as pay.example.com, without query and fragment'
const LINK_FORMAT_FORM =
  'must contain {token} once, in a path and query that browsers leave as it is: no fragment, no . or .. between slashes'
const ORIGIN_FORM = 'must be an https origin such as https://example.com'

/** A text of one form. */
const formed = (pattern: RegExp, what: string, max = 500) =>
  z.string(wrongType(what)).max(max).regex(pattern, what)
/** Within the bounds; else the words say which. */
const between = (min: number, max: number) => {
  const what = `must be a whole number from ${min} to ${max}`
  return z.int(wrongType(what)).min(min, what).max(max, what)
}

const body = z.object({
  enabled: withDefault(z.boolean(), DEFAULT_CHECKOUT.enabled).describe('Whether payment sessions are open'),
  display_name: optional(text(100)),
  logo_url: optional(formed(/^https:\/\/[^\s"'<>]+$/, 'must be an https address')),
  accent_color: optional(formed(/^#[0-9A-Fa-f]{6}$/, 'must be a colour such as #1a2b3c')),
  support_email: optional(email()),
  web_address: optional(formed(WEB_ADDRESS, WEB_ADDRESS_FORM).refine(isAddress, WEB_ADDRESS_FORM)).describe(
    'Host of the partner’s own payment pages; a port and a path may follow it',
  ),
  link_format: optional(formed(LINK_FORMAT, LINK_FORMAT_FORM).refine(staysAsItIs, LINK_FORMAT_FORM)).describe(
    'Path and query of the pages there, `{token}` in it once, without fragment and `.` or `..` between slashes',
  ),
  sender_name: optional(text(100)),
  sender_email: optional(email()),
  sms_from: optional(formed(/^\+[1-9]\d{6,14}$/, 'must be a number such as +12025550123')),
  link_ttl_minutes: optional(between(15, 10_080)),
  single_use: withDefault(z.boolean(), DEFAULT_CHECKOUT.single_use),
  payment_link_ttl_days: withDefault(between(1, 365), DEFAULT_CHECKOUT.payment_link_ttl_days).describe(
    'How long payment links can be paid, counted from their creation',
  ),
  embed_origins: withDefault(
    z
      .array(
        formed(ORIGIN, ORIGIN_FORM, 300)
          .refine(isAddress, ORIGIN_FORM)
          .transform((origin) => new URL(origin).origin),
        wrongType('must be an array of origins'),
      )
      .max(MOST_ORIGINS, `must not have more than ${MOST_ORIGINS} origins`),
    [],
  ).describe('Origins whose pages may show a checkout in a frame'),
})

const Challenge = z.object({
  dns: z.object({ type: z.literal('TXT'), name: z.string(), value: z.string() }),
  file: z.object({ url: z.string(), content: z.string() }),
})

const Settings = z
  .object({
    tenant_id: id(),
    enabled: z.boolean(),
    display_name: z.string().nullable(),
    logo_url: z.string().nullable(),
    accent_color: z.string().nullable(),
    support_email: z.string().nullable(),
    web_address: z.string().nullable(),
    link_format: z.string().nullable(),
    sender_name: z.string().nullable(),
    sender_email: z.string().nullable(),
    sms_from: z.string().nullable(),
    link_ttl_minutes: z.int().nullable(),
    single_use: z.boolean(),
    payment_link_ttl_days: z.int(),
    embed_origins: z.array(z.string()),
    config_version: z.int().describe('0: nothing was set yet; each change adds 1'),
    web_address_verified: z.boolean(),
    web_address_challenge: Challenge.nullable().describe(
      'What proves the web address: publish one of the two, and leave it there. Null: there is no web address',
    ),
    logo_copied: z.boolean().describe('Whether pages show the logo; without it they show the name'),
    logo_problem: z.string().nullable().describe('Why the logo could not be copied'),
  })
  .meta({ id: 'CheckoutSettings' })
const Looked = Settings.extend({
  web_address_look: z
    .object({
      dns: z.string().nullable().describe('Why the TXT record proves nothing; null: it does'),
      file: z.string().nullable().describe('The same of the file'),
    })
    .nullable()
    .describe('What was found; null where you vouch for the address'),
}).meta({ id: 'CheckoutSettingsLooked' })

const one = ofOne('tenant_id', 'tenant')

export const checkoutSettingsEndpoints = [
  endpoint({
    operation: 'setCheckout',
    route: 'PUT /tenants/{tenant_id}/checkout',
    summary: 'Set how a tenant sells: branding, senders, lifetimes',
    description:
      'What is left out is back at its default; what is only shown may be repeated. Links that exist keep the lifetime they ' +
      'were created with.',
    ...one,
    body: repeating(Settings, body),
    answers: { 200: Settings },
    refuses: { 409: ['web_host_taken'] },
    async handle(call) {
      const { host } = call
      const { tenant_id } = await loaded(host, tenant, call.params.tenant_id, 'tenant')
      const { state } = await host.app.commands.load(checkoutSettings, tenant_id)
      const settings = changeOf(body, call, shown(host, tenant_id, state))
      const checkout = accepted(await setCheckout(host.app, tenant_id, settings, contextOf(call)))
      return shown(host, tenant_id, checkout)
    },
  }),
  endpoint({
    operation: 'showCheckout',
    route: 'GET /tenants/{tenant_id}/checkout',
    summary: 'Show how a tenant sells',
    ...one,
    answers: { 200: Settings },
    command: { name: 'tenants show-checkout' },
    async handle({ host, params }) {
      const { tenant_id } = await loaded(host, tenant, params.tenant_id, 'tenant')
      return shown(host, tenant_id, (await host.app.commands.load(checkoutSettings, tenant_id)).state)
    },
  }),
  endpoint({
    operation: 'verifyWebAddress',
    route: 'POST /tenants/{tenant_id}/checkout/verify-web-address',
    summary: 'Look whether the web address of a tenant is its own',
    description:
      'Once it is, links lead there. It is looked again every day; an address that no longer proves itself is not used ' +
      'for new links, and is looked at ever more rarely, every 30 days in the end. One that you vouch for is looked at only when you ask for it.',
    ...one,
    body: z.object({
      force: withDefault(z.boolean(wrongType('must be true or false')), false).describe(
        'Vouch for it: nobody looks',
      ),
    }),
    answers: { 200: Looked },
    errors: {
      ...one.errors,
      409: 'There is no web address, it is the service’s own, or it is verified for another tenant',
    },
    asksOutside: true,
    refuses: {
      409: ['no_web_address', 'own_web_address', 'web_address_taken', 'web_host_taken'],
    },
    async handle(call) {
      const { host, body } = call
      const { tenant_id } = await loaded(host, tenant, call.params.tenant_id, 'tenant')
      const how = { byOperator: body.force, ownHosts: host.services.portalHosts() }
      const { checkout, look } = accepted(await verifyWebAddress(host.app, tenant_id, how, contextOf(call)))
      return { ...shown(host, tenant_id, checkout), web_address_look: look }
    },
  }),
]

function shown({ app }: Pick<OperatorHost, 'app'>, tenant_id: string, checkout: Checkout) {
  const { settings, config_version, web_address_proof, logo_id, logo_problem } = checkout
  const { web_address } = settings
  const challenge = web_address === null ? null : challengeOf(app, tenant_id, web_address)
  return {
    tenant_id,
    ...settings,
    config_version,
    web_address_verified: web_address_proof !== null,
    web_address_challenge: challenge && {
      dns: { type: 'TXT' as const, ...challenge.dns },
      file: challenge.file,
    },
    logo_copied: logo_id !== null,
    logo_problem,
  }
}
