import { z } from 'zod'
import { isoTime } from '../../kernel/calendar.ts'
import type { Decider } from '../../kernel/decider.ts'
import { type EventOf, eventType, time } from '../../kernel/event-type.ts'
import { id } from '../../kernel/ids.ts'
import type { Rejection } from '../../kernel/rejection.ts'
import { LOGO_TYPES, type LogoType, logoId } from './logo.ts'
import { pagePattern, webBase } from './web-address.ts'

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

export const CheckoutSettingsChanged = eventType('CheckoutSettingsChanged', {
  tenant_id: id(),
  config_version: z.int().min(1),
  settings,
})

const PROOFS = ['dns', 'file', 'operator'] as const
export type Proof = (typeof PROOFS)[number]
const webAddress = { tenant_id: id(), web_address: z.string(), at: time() }
/** The partner's own address was proven to be its own: from now on pages are issued there. */
export const WebAddressVerified = eventType('WebAddressVerified', { ...webAddress, by: z.enum(PROOFS) })
/** A later look found no proof any more: pages are issued on the service's own address again. */
export const WebAddressUnverified = eventType('WebAddressUnverified', webAddress)

const logoAddress = { tenant_id: id(), logo_url: z.string(), at: time() }
/** A copy of the logo is kept: pages show it. */
export const LogoCopied = eventType('LogoCopied', {
  ...logoAddress,
  logo_id: logoId(),
  media_type: z.enum(LOGO_TYPES),
})
/** The logo could not be copied: pages show the name. */
export const LogoMissed = eventType('LogoMissed', { ...logoAddress, why: z.string() })

const events = [
  ...[CheckoutSettingsChanged, WebAddressVerified, WebAddressUnverified],
  ...[LogoCopied, LogoMissed],
] as const
export type CheckoutSettingsEvent = EventOf<(typeof events)[number]>
export interface Checkout {
  readonly settings: CheckoutSettings
  /** 0 until they are set for the first time; each change adds 1. */
  readonly config_version: number
  /** The proof that the address is the partner's; null: none. */
  readonly web_address_proof: Proof | null
  /** Since when a later look found no proof; null where none was lost. */
  readonly unproven_since: string | null
  /** Path and query of the pages on its own addresses, those of before included, newest first; links to them are out. */
  readonly page_patterns: readonly string[]
  /** The copy of the logo that is set; null: there is none. */
  readonly logo_id: string | null
  /** Why the logo that is set could not be copied; null where it was, or was not tried yet. */
  readonly logo_problem: string | null
}
export type CheckoutSettingsCommand =
  | { readonly type: 'Set'; readonly tenantId: string; readonly settings: CheckoutSettings }
  /** What a look at an address found, epoch milliseconds; one that was changed meanwhile is no longer asked about. */
  | {
      readonly type: 'RecordLook'
      readonly tenantId: string
      readonly webAddress: string
      /** The proof that there was when the look began: it says nothing of one that came meanwhile. */
      readonly before: Proof | null
      /** Null: no proof was found. */
      readonly provenBy: Proof | null
      readonly at: number
    }
  /** What became of copying a logo, epoch milliseconds; of one that was changed meanwhile it no longer matters. */
  | {
      readonly type: 'RecordLogo'
      readonly tenantId: string
      readonly logoUrl: string
      readonly copied: { readonly logoId: string; readonly mediaType: LogoType } | { readonly why: string }
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

/** Patterns of pages that are remembered at the most: of settings that change for ever, the oldest go. */
const MOST_PATTERNS = 50

export const checkoutSettings: Decider<Checkout, CheckoutSettingsCommand, CheckoutSettingsEvent> = {
  category: 'checkoutSettings',
  events,
  initialState: {
    settings: DEFAULT_CHECKOUT,
    config_version: 0,
    web_address_proof: null,
    unproven_since: null,
    page_patterns: [],
    logo_id: null,
    logo_problem: null,
  },
  evolve(state, event) {
    switch (event.type) {
      case 'WebAddressVerified':
        return { ...state, web_address_proof: event.data.by, unproven_since: null }
      case 'WebAddressUnverified':
        return { ...state, web_address_proof: null, unproven_since: event.data.at }
      case 'LogoCopied':
        return { ...state, logo_id: event.data.logo_id, logo_problem: null }
      case 'LogoMissed':
        return { ...state, logo_id: null, logo_problem: event.data.why }
      case 'CheckoutSettingsChanged': {
        const { settings, config_version } = event.data
        const { logo_id, logo_problem } = state
        const isSame = isSameAddress(settings, state.settings)
        const isSameLogo = settings.logo_url === state.settings.logo_url
        return {
          settings,
          config_version,
          page_patterns: patternsAfter(state, settings),
          web_address_proof: isSame ? state.web_address_proof : null,
          unproven_since: isSame ? state.unproven_since : null,
          ...(isSameLogo ? { logo_id, logo_problem } : { logo_id: null, logo_problem: null }),
        }
      }
    }
  },
  decide(command, state): readonly CheckoutSettingsEvent[] | Rejection {
    const { tenantId: tenant_id } = command
    switch (command.type) {
      case 'RecordLook': {
        const { webAddress: web_address, before, provenBy, at: epochMs } = command
        const at = isoTime(epochMs)
        if (state.settings.web_address !== web_address) return []
        if (provenBy === null && state.web_address_proof !== before) return []
        // which of the two ways it is makes no difference; whether anybody looks, does
        if (kindOf(state.web_address_proof) === kindOf(provenBy)) return []
        return provenBy === null
          ? [WebAddressUnverified.of({ tenant_id, web_address, at })]
          : [WebAddressVerified.of({ tenant_id, web_address, by: provenBy, at })]
      }
      case 'RecordLogo': {
        const { logoUrl: logo_url, copied, at: epochMs } = command
        const at = isoTime(epochMs)
        if (state.settings.logo_url !== logo_url) return []
        if ('why' in copied) {
          const { why } = copied
          return state.logo_problem === why ? [] : [LogoMissed.of({ tenant_id, logo_url, why, at })]
        }
        const { logoId: logo_id, mediaType: media_type } = copied
        return state.logo_id === logo_id
          ? []
          : [LogoCopied.of({ tenant_id, logo_url, logo_id, media_type, at })]
      }
      case 'Set': {
        const { settings } = command
        const isSame = Object.entries(settings).every(
          ([name, value]) =>
            JSON.stringify(value) === JSON.stringify(state.settings[name as keyof CheckoutSettings]),
        )
        if (state.config_version > 0 && isSame) return []
        return [CheckoutSettingsChanged.of({ tenant_id, config_version: state.config_version + 1, settings })]
      }
    }
  },
}

function kindOf(proof: Proof | null): 'published' | 'operator' | null {
  return proof === 'dns' || proof === 'file' ? 'published' : proof
}

type Addressed = Pick<CheckoutSettings, 'web_address' | 'link_format'>

/** However it is written. */
export function isSameAddress(
  { web_address: one }: Pick<Addressed, 'web_address'>,
  { web_address: other }: Pick<Addressed, 'web_address'>,
): boolean {
  return one !== null && other !== null && webBase(one) === webBase(other)
}

function patternsAfter(
  { page_patterns }: Checkout,
  { web_address, link_format }: Addressed,
): readonly string[] {
  if (web_address === null || link_format === null) return page_patterns
  const pattern = pagePattern(web_address, link_format)
  return [pattern, ...page_patterns.filter((one) => one !== pattern)].slice(0, MOST_PATTERNS)
}

/** The sender of emails, by name where there is one; null: the service's own. */
export function senderOf({ sender_name, sender_email }: CheckoutSettings): string | null {
  if (sender_email === null || sender_name === null) return sender_email
  return `"${sender_name.replaceAll(/["\\\p{C}]/gu, ' ')}" <${sender_email}>`
}
