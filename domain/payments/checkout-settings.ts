import { z } from 'zod'
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

export type CheckoutSettingsEvent = EventOf<typeof CheckoutSettingsChanged>
export interface Checkout {
  readonly settings: CheckoutSettings
  /** 0 until they are set for the first time; each change adds 1. */
  readonly config_version: number
}
export type CheckoutSettingsCommand = {
  readonly type: 'Set'
  readonly tenantId: string
  readonly settings: CheckoutSettings
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
  events: [CheckoutSettingsChanged],
  initialState: { settings: DEFAULT_CHECKOUT, config_version: 0 },
  evolve: (_state, { data: { settings, config_version } }) => ({ settings, config_version }),
  decide({ tenantId: tenant_id, settings }, state): readonly CheckoutSettingsEvent[] | Rejection {
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
