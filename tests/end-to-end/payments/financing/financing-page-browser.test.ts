// @module-tag long: payer-page-browser looks at the same pieces in every view
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { browserPath } from '../../../support/browser.ts'
import { checkout, checkoutBody, simulate } from '../../../support/financing.ts'
import {
  faultsOf,
  overflowOf,
  type PayerBrowser,
  picture,
  startPayerBrowser,
  VIEWS,
  type View,
} from '../../../support/payer-browser.ts'
import { enableCheckout } from '../../../support/payment-sessions.ts'
import { partner } from '../../../support/payments.ts'
import { type SeededTenant, seedTenant } from '../../../support/seed.ts'
import { type SharedService, sharedService } from '../../../support/service.ts'

/** The page of a financing session in a real browser. Pictures of it are kept in node_modules/.cache/payer-pages. */

describe.skipIf(browserPath === null)('the page of financing in a real browser (needs chromium)', () => {
  let service: SharedService
  let tenant: SeededTenant
  let browser: PayerBrowser
  const states: Record<string, string> = {}

  async function page(overrides: Record<string, unknown> = {}) {
    const { data } = (await checkout(service, tenant, checkoutBody(tenant, overrides))).body
    return { id: data.session_id as string, url: `${service.portalUrl}/pay/${data.finance_access_token}` }
  }
  beforeAll(async () => {
    service = await sharedService()
    tenant = await seedTenant(service, { environment: 'sandbox' })
    await enableCheckout(service, tenant, { accent_color: '#0b7a75' })
    states.pending = (await page()).url
    const verbs = {
      ready: ['quotes'],
      'on hold': ['hold'],
      expired: ['expire'],
      reported: ['quotes', 'down-payment-notice'],
    } as const
    for (const [state, told] of Object.entries(verbs)) {
      const { id, url } = await page({ description: 'Workers’ compensation 2026 <b>&</b> renewal' })
      for (const verb of told) await simulate(service, id, verb)
      states[state] = url
    }
    const cancelled = await page()
    await partner(service, tenant.clientHeaders, 'DELETE', `/payment-sessions/${cancelled.id}`)
    states.cancelled = cancelled.url
    browser = await startPayerBrowser()
  })
  afterAll(() => browser?.close())

  test.each(Object.keys(VIEWS) as View[])('has no fault in any state: %s', async (view) => {
    for (const [state, url] of Object.entries(states)) {
      const opened = await browser.open(url, view)
      try {
        const { page, complaints, asked } = opened
        await picture(page, `financing ${state}-${view}`)
        const found = [await faultsOf(page), await overflowOf(page), complaints]
        expect([state, ...found]).toEqual([state, [], 0, []])
        expect(await page.locator('form, input, button').count()).toBe(0)
        expect(asked.filter((one) => !one.startsWith('data:') && one !== url)).toEqual([])
      } finally {
        await opened.close()
      }
    }
  })
})
