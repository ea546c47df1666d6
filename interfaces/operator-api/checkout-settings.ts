import { z } from 'zod'
import { setCheckout } from '../../application/payments/checkout-settings.ts'
import { tenant } from '../../domain/parties/tenant.ts'
import { type Checkout, checkoutSettings, DEFAULT_CHECKOUT } from '../../domain/payments/checkout-settings.ts'
import { accepted } from '../endpoints/endpoint.ts'
import { email, id, idOf, optional, text, withDefault, wrongType } from '../endpoints/fields.ts'
import { contextOf, endpoint, loaded, operator } from './api.ts'
import { list } from './values.ts'

const HOST = '[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?'
const ORIGIN = new RegExp(`^https?://${HOST}(?::\\d{1,5})?$`)
const WEB_ADDRESS = new RegExp(`^https://${HOST}(?::\\d{1,5})?(?:/[\\w.~/-]*)?$`)

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
  web_address: optional(formed(WEB_ADDRESS, 'must be an https address without query and fragment')).describe(
    'Base of the partner’s own payment page',
  ),
  link_format: optional(formed(/^[^\s<>"']*\{token\}[^\s<>"']*$/, 'must contain {token}')),
  sender_name: optional(text(100)),
  sender_email: optional(email()),
  sms_from: optional(formed(/^\+[1-9]\d{6,14}$/, 'must be a number such as +12025550123')),
  link_ttl_minutes: optional(between(15, 10_080)),
  single_use: withDefault(z.boolean(), DEFAULT_CHECKOUT.single_use),
  payment_link_ttl_days: withDefault(between(1, 365), DEFAULT_CHECKOUT.payment_link_ttl_days).describe(
    'How long payment links can be paid, counted from their creation',
  ),
  embed_origins: withDefault(list(formed(ORIGIN, 'must be an origin such as https://example.com')), []),
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
  })
  .meta({ id: 'CheckoutSettings' })

const params = z.object({ tenant_id: idOf('tenant') })
const NONE = { 404: 'There is no such tenant' } as const

export const checkoutSettingsEndpoints = [
  endpoint({
    operation: 'setCheckout',
    method: 'PUT',
    path: '/tenants/{tenant_id}/checkout',
    summary: 'Set how a tenant sells: branding, senders, lifetimes',
    description:
      'What is left out is back at its default. Links that exist keep the lifetime they were created with.',
    access: operator,
    params,
    body,
    answers: { 200: Settings },
    errors: NONE,
    command: { name: 'tenants checkout' },
    async handle(call) {
      const { host, body } = call
      const { tenant_id } = await loaded(host, tenant, call.params.tenant_id, 'tenant')
      return shown(tenant_id, accepted(await setCheckout(host.app, tenant_id, body, contextOf(call))))
    },
  }),
  endpoint({
    operation: 'showCheckout',
    method: 'GET',
    path: '/tenants/{tenant_id}/checkout',
    summary: 'Show how a tenant sells',
    access: operator,
    params,
    answers: { 200: Settings },
    errors: NONE,
    command: { name: 'tenants show-checkout' },
    async handle({ host, params }) {
      const { tenant_id } = await loaded(host, tenant, params.tenant_id, 'tenant')
      return shown(tenant_id, (await host.app.commands.load(checkoutSettings, tenant_id)).state)
    },
  }),
]

function shown(tenant_id: string, { settings, ...checkout }: Checkout) {
  return { tenant_id, ...settings, ...checkout }
}
