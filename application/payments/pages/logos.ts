import { hash } from 'node:crypto'
import { orThrow } from '../../../domain/kernel/rejection.ts'
import { checkoutSettings } from '../../../domain/payments/pages/checkout-settings.ts'
import { type LogoType, logo, logoTypeOf } from '../../../domain/payments/pages/logo.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { OutsideWebFailed } from '../../ports/outside-web.ts'

/** Of the copy of a logo at the most. */
const MOST_BYTES = 128 * 1024

/** An image as it is served. */
export interface LogoCopy {
  readonly mediaType: LogoType
  readonly content: Buffer
}

/** Path of a logo's copy on the host of hosted pages. */
export function logoPath(logoId: string): string {
  return `/logos/${logoId}`
}

/** The copy of a logo; null when there is none of that id. */
export async function logoCopy(
  { commands }: Pick<Application, 'commands'>,
  logoId: string,
): Promise<LogoCopy | null> {
  if (!/^[0-9a-f]{64}$/.test(logoId)) return null
  const { state } = await commands.load(logo, logoId)
  return state && { mediaType: state.media_type, content: Buffer.from(state.content, 'base64') }
}

/**
 * Copies the logo that a tenant's settings name, unless it is there or they name another one by now.
 * @returns whether that is over; when it could not be copied, the settings say why.
 * @throws the reason of the signal.
 */
export async function copyLogo(
  app: Application,
  tenantId: string,
  logoUrl: string,
  signal: AbortSignal,
  context: CommandContext,
): Promise<{ readonly isOver: boolean }> {
  const { state } = await app.commands.load(checkoutSettings, tenantId)
  if (state.settings.logo_url !== logoUrl || state.logo_id !== null) return { isOver: true }
  const got = await fetched(app, logoUrl, signal)
  if ('why' in got) {
    await record(app, tenantId, logoUrl, got, context)
    return { isOver: false }
  }
  const { mediaType, content } = got
  const logoId = hash('sha256', content, 'hex')
  const copy = { logo_id: logoId, media_type: mediaType, content: content.toString('base64') }
  orThrow(await app.commands.execute(logo, logoId, { type: 'Keep', logo: copy }, context))
  await record(app, tenantId, logoUrl, { logoId, mediaType }, context)
  return { isOver: true }
}

async function fetched(
  { outsideWeb }: Pick<Application, 'outsideWeb'>,
  url: string,
  signal: AbortSignal,
): Promise<LogoCopy | { readonly why: string }> {
  try {
    const { statusCode, body } = await outsideWeb.get(url, MOST_BYTES, signal)
    if (statusCode !== 200) return { why: `The address answered ${statusCode}` }
    const mediaType = logoTypeOf(body)
    return mediaType === null
      ? { why: 'The file is no PNG, JPEG, GIF or WebP' }
      : { mediaType, content: body }
  } catch (error) {
    if (error instanceof OutsideWebFailed) return { why: error.message }
    throw error
  }
}

async function record(
  app: Application,
  tenantId: string,
  logoUrl: string,
  copied: { readonly logoId: string; readonly mediaType: LogoType } | { readonly why: string },
  context: CommandContext,
): Promise<void> {
  const command = { type: 'RecordLogo', tenantId, logoUrl, copied, at: app.clock.now() } as const
  orThrow(await app.commands.execute(checkoutSettings, tenantId, command, context))
}
