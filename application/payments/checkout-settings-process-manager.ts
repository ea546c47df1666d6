import { z } from 'zod'
import { isRejection } from '../../domain/kernel/rejection.ts'
import {
  type Checkout,
  CheckoutSettingsChanged,
  isSameAddress,
  checkoutSettings as settings,
  WebAddressUnverified,
  WebAddressVerified,
} from '../../domain/payments/pages/checkout-settings.ts'
import type { Application } from '../commands/application.ts'
import { cancel, contextOf, ladder, on, perform, processManager, work } from '../followers/process-manager.ts'
import { copyLogo } from './pages/logos.ts'
import { lookAt, recordLook } from './web-addresses.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
/** How often it is looked whether a web address is still its tenant's, in service-clock milliseconds. */
const LOOK_AGAIN_MS = 24 * HOUR_MS
/** The same of one that stays unproven, at the most. */
const MOST_LOOK_AGAIN_MS = 30 * LOOK_AGAIN_MS

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
      // an address that the operator vouched for is not looked at
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
        },
        async (item) => {
          const { logo_url } = item.payload
          // of several tries, each records what came of it
          const context = { ...contextOf(item), commandId: `${item.commandId}/${item.attempt}` }
          const { isOver } = await copyLogo(app, item.key, logo_url, item.signal, context)
          if (isOver || item.isLastTry) return
          return { outcome: 'retry', why: 'The logo could not be copied' }
        },
      ),
      look: work(
        {
          payload: z.object({ web_address: z.string() }),
          retry: ladder(HOUR_MS, 6 * HOUR_MS, 24 * HOUR_MS),
        },
        async (item) => {
          const { state } = await app.commands.load(settings, item.key)
          const { web_address } = state.settings
          if (web_address === null || !isSameAddress(state.settings, item.payload)) return
          const { look, isAnswered } = await lookAt(app, item.key, web_address, item.signal)
          // this process may reach no address at all
          if (!isAnswered && state.web_address_proof !== null && !item.isLastTry) {
            return { outcome: 'retry', why: 'Neither the name servers nor the host answered' }
          }
          // of several looks, each records under its own time
          const context = { ...contextOf(item), commandId: `${item.commandId}/${item.dueAt}` }
          const found = { before: state.web_address_proof, provenBy: look.provenBy }
          const recorded = await recordLook(app, item.key, web_address, found, context)
          // another tenant has proven it meanwhile
          if (isRejection(recorded)) return
          // what changed is followed by a look of its own
          const now = Math.max(app.clock.now(), item.dueAt)
          return { outcome: 'again', at: now + untilNextLook(recorded, now) }
        },
      ),
    },
  })
}

/** As long again as an address has been unproven, within bounds. */
function untilNextLook({ unproven_since }: Checkout, now: number): number {
  const unprovenMs = unproven_since === null ? 0 : now - Date.parse(unproven_since)
  return Math.min(Math.max(unprovenMs, LOOK_AGAIN_MS), MOST_LOOK_AGAIN_MS)
}

function lookLater(tenantId: string, { web_address, at }: { web_address: string; at: string }) {
  return perform('look', tenantId, { web_address }, { at: Date.parse(at) + LOOK_AGAIN_MS })
}
