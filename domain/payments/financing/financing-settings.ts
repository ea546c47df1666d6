import { z } from 'zod'
import type { Decider } from '../../kernel/decider.ts'
import { type EventOf, eventType } from '../../kernel/event-type.ts'
import { id } from '../../kernel/ids.ts'
import type { Rejection } from '../../kernel/rejection.ts'
import { sealContext, sealed, secret } from '../../kernel/sealed.ts'

/** What of the financing test path is open to a tenant. The stream id is the tenant's. */
const settings = z.object({
  /** Whether sandbox keys may create financing sessions and ask for quotes. */
  enabled: z.boolean(),
  invitations_enabled: z.boolean(),
  /** Recipients that may be invited. */
  recipients: z.array(
    z.object({
      address: sealed({
        subject: 'person',
        boundTo: ({ data }) =>
          sealContext(`financingSettings-${data.tenant_id}`, 'FinancingSettingsChanged', 'recipient'),
      }),
      /** Of the address: by it a recipient is found. */
      fingerprint: secret(),
    }),
  ),
  agreements_enabled: z.boolean(),
})
export type FinancingSettings = z.output<typeof settings>

export const FinancingSettingsChanged = eventType('FinancingSettingsChanged', { tenant_id: id(), settings })

const events = [FinancingSettingsChanged] as const
export type FinancingSettingsEvent = EventOf<(typeof events)[number]>
export interface FinancingSettingsCommand {
  readonly type: 'Set'
  readonly tenantId: string
  readonly settings: FinancingSettings
}

/** What holds where nothing was set. */
export const DEFAULT_FINANCING: FinancingSettings = {
  enabled: true,
  invitations_enabled: false,
  recipients: [],
  agreements_enabled: true,
}

export const financingSettings: Decider<FinancingSettings, FinancingSettingsCommand, FinancingSettingsEvent> =
  {
    category: 'financingSettings',
    events,
    initialState: DEFAULT_FINANCING,
    evolve: (_state, { data }) => data.settings,
    decide({ tenantId: tenant_id, settings }, state): readonly FinancingSettingsEvent[] | Rejection {
      // a seal of the same address differs each time
      if (plain(settings) === plain(state)) return []
      return [FinancingSettingsChanged.of({ tenant_id, settings })]
    },
  }

function plain({ recipients, ...switches }: FinancingSettings): string {
  const { enabled, invitations_enabled, agreements_enabled } = switches
  const allowed = recipients.map(({ fingerprint }) => fingerprint)
  return JSON.stringify([enabled, invitations_enabled, agreements_enabled, allowed])
}
