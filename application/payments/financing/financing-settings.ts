import { isRejection, type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import {
  type FinancingSettings,
  FinancingSettingsChanged,
  financingSettings,
} from '../../../domain/payments/financing/financing-settings.ts'
import { unknownTenant } from '../../access/tenants.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { openedOne } from '../../commands/sealed-fields.ts'
import { sealFields } from '../../commands/sealing.ts'
import { within } from '../../commands/verbs.ts'

/** The settings of the financing test path, as operators set and see them. */
export interface ShownFinancing extends Omit<FinancingSettings, 'recipients'> {
  /** Email addresses. */
  readonly recipient_allowlist: readonly string[]
}

/** Sets what of the financing test path is open to a tenant; what is as it was is no change. */
export async function setFinancing(
  app: Application,
  tenantId: string,
  { recipient_allowlist, ...switches }: ShownFinancing,
  context: CommandContext,
): Promise<ShownFinancing | Rejection> {
  const unknown = await unknownTenant(app, tenantId)
  if (unknown) return unknown
  const wanted = new Map(recipient_allowlist.map((one) => [recipientFingerprint(app, one), one]))
  const draft = {
    tenant_id: tenantId,
    settings: {
      ...switches,
      recipients: [...wanted].map(([fingerprint, address]) => ({ address, fingerprint })),
    },
  }
  const { settings } = await sealFields(app.personalData, FinancingSettingsChanged, draft, (place) =>
    app.personalData.subjectId('person', (place.holder as { fingerprint: string }).fingerprint),
  )
  const command = { type: 'Set', tenantId, settings } as const
  const scoped = within(context, { tenant_id: tenantId })
  const outcome = await app.commands.execute(financingSettings, tenantId, command, scoped)
  return isRejection(outcome) ? outcome : shown(app, tenantId, outcome.state)
}

/** What of the financing test path is open to a tenant. */
export async function showFinancing(
  app: Pick<Application, 'commands' | 'personalData'>,
  tenantId: string,
): Promise<ShownFinancing> {
  return shown(app, tenantId, (await app.commands.load(financingSettings, tenantId)).state)
}

async function shown(
  { personalData }: Pick<Application, 'personalData'>,
  tenant_id: string,
  settings: FinancingSettings,
): Promise<ShownFinancing> {
  const { recipients, ...switches } = settings
  const sealed = { tenant_id, settings: { recipients } }
  const plain = await openedOne(personalData, FinancingSettingsChanged, sealed)
  return { ...switches, recipient_allowlist: plain.settings.recipients.map(({ address }) => address) }
}

/** Keyed fingerprint of an address, whose letters count as equal in both cases. */
export function recipientFingerprint(
  { personalData }: Pick<Application, 'personalData'>,
  address: string,
): string {
  return personalData.fingerprint('financing_recipient', address.trim().toLowerCase())
}

/** Why a tenant has no financing test path. */
export function refuseSetup({ enabled }: FinancingSettings): Rejection | null {
  if (enabled) return null
  return reject('unavailable', 'financing_off', 'The financing test path is not set up for this account')
}
