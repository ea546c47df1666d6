import { z } from 'zod'
import { isRejection } from '../../domain/kernel/rejection.ts'
import {
  CheckoutSettingsChanged,
  checkoutSettings as settings,
  WebAddressUnverified,
  WebAddressVerified,
} from '../../domain/payments/checkout-settings.ts'
import type { Application } from '../application.ts'
import { copyLogo } from '../payments/logos.ts'
import { lookAt, recordLook } from '../payments/web-addresses.ts'
import {
  backoff,
  cancel,
  contextOf,
  ladder,
  on,
  perform,
  processManager,
  work,
} from './runtime/process-manager.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
/** How often it is looked whether a web address is still its tenant's, in service-clock milliseconds. */
const LOOK_AGAIN_MS = 24 * HOUR_MS

/** What follows from the settings of a checkout: the copy of its logo, and looks at its web address. */
export function checkoutSettings(app: Application) {
  return processManager({
    name: 'checkout-settings',
    startAt: 'beginning',
    on: [
      on(CheckoutSettingsChanged, ({ data: { tenant_id, settings } }) => {
        const { logo_url } = settings
        return [
          logo_url === null ? cancel('copy-logo', tenant_id) : perform('copy-logo', tenant_id, { logo_url }),
        ]
      }),
      // nobody asks about what the operator vouched for
      on(WebAddressVerified, ({ data: { tenant_id, by, ...data } }) => [
        by === 'operator' ? cancel('look', tenant_id) : lookLater(tenant_id, data),
      ]),
      on(WebAddressUnverified, ({ data: { tenant_id, ...data } }) => [lookLater(tenant_id, data)]),
    ],
    work: {
      'copy-logo': work(
        {
          payload: z.object({ logo_url: z.string() }),
          retry: ladder(10 * MINUTE_MS, HOUR_MS, 24 * HOUR_MS),
          timeLimitMs: 60_000,
        },
        async (item) => {
          const { logo_url } = item.payload
          // of several tries, each records what came of it
          const context = { ...contextOf(item), commandId: `${item.commandId}/${item.attempt}` }
          const { isOver } = await copyLogo(app, item.key, logo_url, item.signal, context)
          if (isOver || item.isLastTry) return { outcome: 'done' }
          return { outcome: 'retry', why: 'The logo could not be copied' }
        },
      ),
      look: work(
        { payload: z.object({ web_address: z.string() }), retry: backoff(), timeLimitMs: 60_000 },
        async (item) => {
          const { web_address } = item.payload
          const { state } = await app.commands.load(settings, item.key)
          if (state.settings.web_address !== web_address) return { outcome: 'done' }
          const { provenBy } = await lookAt(app, item.key, web_address, item.signal)
          // of several looks, each records under its own time
          const context = { ...contextOf(item), commandId: `${item.commandId}/${item.dueAt}` }
          const recorded = await recordLook(app, item.key, web_address, provenBy, context)
          // another tenant has proven it meanwhile
          if (isRejection(recorded)) return { outcome: 'done' }
          // what changed is followed by a look of its own
          return { outcome: 'again', at: item.dueAt + LOOK_AGAIN_MS }
        },
      ),
    },
  })
}

function lookLater(tenantId: string, { web_address, at }: { web_address: string; at: string }) {
  return perform('look', tenantId, { web_address }, { at: Date.parse(at) + LOOK_AGAIN_MS })
}
