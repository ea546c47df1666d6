import { z } from 'zod'
import type { Decider } from '../../kernel/decider.ts'
import { type EventOf, eventType } from '../../kernel/event-type.ts'

/** A copy of a partner's logo. Its stream is named by its content: equal ones are one. */

export const LOGO_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'] as const
export type LogoType = (typeof LOGO_TYPES)[number]

/** SHA-256 of the bytes, hexadecimal. */
export const logoId = () => z.string().regex(/^[0-9a-f]{64}$/)

const base64 = () => z.string().regex(/^[A-Za-z0-9+/]*={0,2}$/)

export const LogoKept = eventType('LogoKept', {
  logo_id: logoId(),
  media_type: z.enum(LOGO_TYPES),
  content: base64(),
})

const events = [LogoKept] as const
export type LogoEvent = EventOf<(typeof events)[number]>
export type Logo = LogoEvent['data']
export type LogoCommand = { readonly type: 'Keep'; readonly logo: Logo }

export const logo: Decider<Logo | null, LogoCommand, LogoEvent> = {
  category: 'logo',
  events,
  initialState: null,
  evolve: (_state, { data }) => data,
  decide: (command, state) => (state === null ? [LogoKept.of(command.logo)] : []),
}

const text = (...codes: readonly number[]) => String.fromCharCode(...codes)
const SIGNATURES: readonly [LogoType, RegExp][] = [
  ['image/png', new RegExp(`^${text(0x89)}PNG\r\n${text(0x1a)}\n`)],
  ['image/jpeg', new RegExp(`^${text(0xff, 0xd8, 0xff)}`)],
  ['image/gif', /^GIF8[79]a/],
  ['image/webp', /^RIFF[\s\S]{4}WEBP/],
]

/** The type of an image by its first bytes, whatever it was said to be; null for all others. */
export function logoTypeOf(bytes: Uint8Array): LogoType | null {
  const beginning = text(...bytes.subarray(0, 12))
  return SIGNATURES.find(([, signature]) => signature.test(beginning))?.[0] ?? null
}
