import { z } from 'zod'
import { isoTime } from '../kernel/calendar.ts'
import type { Decider } from '../kernel/decider.ts'
import { type EventOf, eventType } from '../kernel/event-type.ts'
import { id } from '../kernel/ids.ts'
import type { Rejection } from '../kernel/rejection.ts'

/** How a tenant sells: its branding and senders, and how long what it sends can be paid. The stream id is the tenant's. */
const settings = z.object({
  /** Whether payment sessions may be created. */
  enabled: z.boolean(),
  display_name: z.string().nullable(),
  logo_url: z.string().nullable(),
  /** `#rrggbb`. */
  accent_color: z.string().nullable(),
  support_email: z.string().nullable(),
  /** Base address of the partner's own payment page. */
  web_address: z.string().nullable(),
  /** Path below the web address, with `{token}` in it. */
  link_format: z.string().nullable(),
  sender_name: z.string().nullable(),
  sender_email: z.string().nullable(),
  sms_from: z.string().nullable(),
  link_ttl_minutes: z.int().nullable(),
  single_use: z.boolean(),
  payment_link_ttl_days: z.int(),
  /** Origins that may embed a checkout. */
  embed_origins: z.array(z.string()),
})
export type CheckoutSettings = z.output<typeof settings>

export const CheckoutSettingsChanged = eventType({
  name: 'CheckoutSettingsChanged',
  schema: z.object({ tenant_id: id(), config_version: z.int().min(1), settings }),
})

const webAddress = { tenant_id: id(), web_address: z.string(), at: z.iso.datetime({ precision: 3 }) }
/** The partner's own address was proven to be its own: from now on pages are issued there. */
export const WebAddressVerified = eventType({
  name: 'WebAddressVerified',
  schema: z.object({ ...webAddress, by: z.enum(['dns', 'file', 'operator']) }),
})
/** A later look found no proof any more: pages are issued on the service's own address again. */
export const WebAddressUnverified = eventType({
  name: 'WebAddressUnverified',
  schema: z.object(webAddress),
})

const events = [CheckoutSettingsChanged, WebAddressVerified, WebAddressUnverified] as const
export type CheckoutSettingsEvent = EventOf<(typeof events)[number]>
export interface Checkout {
  readonly settings: CheckoutSettings
  /** 0 until they are set for the first time; each change adds 1. */
  readonly config_version: number
  /** The partner's own address was proven to be its own. */
  readonly web_address_verified: boolean
}
export type CheckoutSettingsCommand =
  | { readonly type: 'Set'; readonly tenantId: string; readonly settings: CheckoutSettings }
  /** What a look at an address found, epoch milliseconds; one that was changed meanwhile is no longer asked about. */
  | {
      readonly type: 'RecordLook'
      readonly tenantId: string
      readonly webAddress: string
      /** Null: no proof was found. */
      readonly provenBy: 'dns' | 'file' | 'operator' | null
      readonly at: number
    }

/** What holds where nothing was set. */
export const DEFAULT_CHECKOUT: CheckoutSettings = {
  enabled: false,
  display_name: null,
  logo_url: null,
  accent_color: null,
  support_email: null,
  web_address: null,
  link_format: null,
  sender_name: null,
  sender_email: null,
  sms_from: null,
  link_ttl_minutes: null,
  single_use: true,
  payment_link_ttl_days: 30,
  embed_origins: [],
}

export const checkoutSettings: Decider<Checkout, CheckoutSettingsCommand, CheckoutSettingsEvent> = {
  category: 'checkoutSettings',
  events,
  initialState: { settings: DEFAULT_CHECKOUT, config_version: 0, web_address_verified: false },
  evolve(state, event) {
    if (event.type === 'WebAddressVerified') return { ...state, web_address_verified: true }
    if (event.type === 'WebAddressUnverified') return { ...state, web_address_verified: false }
    const { settings, config_version } = event.data
    const isSameAddress = settings.web_address === state.settings.web_address
    const web_address_verified = state.web_address_verified && isSameAddress
    return { settings, config_version, web_address_verified }
  },
  decide(command, state): readonly CheckoutSettingsEvent[] | Rejection {
    const { tenantId: tenant_id } = command
    if (command.type === 'RecordLook') {
      const { webAddress: web_address, provenBy, at: epochMs } = command
      const at = isoTime(epochMs)
      if (state.settings.web_address !== web_address) return []
      if (state.web_address_verified === (provenBy !== null)) return []
      return provenBy === null
        ? [WebAddressUnverified.of({ tenant_id, web_address, at })]
        : [WebAddressVerified.of({ tenant_id, web_address, by: provenBy, at })]
    }
    const { settings } = command
    const isSame = Object.entries(settings).every(
      ([name, value]) =>
        JSON.stringify(value) === JSON.stringify(state.settings[name as keyof CheckoutSettings]),
    )
    if (state.config_version > 0 && isSame) return []
    return [CheckoutSettingsChanged.of({ tenant_id, config_version: state.config_version + 1, settings })]
  },
}

/** The sender of e-mails, by name where there is one; null: the service's own. */
export function senderOf({ sender_name, sender_email }: CheckoutSettings): string | null {
  if (sender_email === null || sender_name === null) return sender_email
  return `"${sender_name.replaceAll(/["\\\p{C}]/gu, ' ')}" <${sender_email}>`
}
