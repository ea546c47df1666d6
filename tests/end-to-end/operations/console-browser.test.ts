// @module-tag once
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { browserPath } from '../../support/browser.ts'
import {
  faultsOf,
  overflowOf,
  type PayerBrowser,
  picture,
  startPayerBrowser,
  type View,
} from '../../support/payer-browser.ts'
import { operate, type SeededTenant, seedTenant } from '../../support/seed.ts'
import { type SharedService, sharedService } from '../../support/service.ts'

/** The console in a real browser. Pictures of it are kept in node_modules/.cache/payer-pages. */

describe.skipIf(browserPath === null)('the console in a real browser (needs chromium)', () => {
  let service: SharedService
  let tenant: SeededTenant
  let browser: PayerBrowser
  beforeAll(async () => {
    service = await sharedService()
    tenant = await seedTenant(service)
    browser = await startPayerBrowser()
  })
  afterAll(() => browser?.close())

  async function on(view: View, act: (page: Page) => Promise<void>, javaScriptEnabled = true): Promise<void> {
    const opened = await browser.open(`${service.opsUrl}/console`, view, { javaScriptEnabled })
    try {
      await opened.page.getByLabel('Operator token').fill(service.operatorToken)
      await opened.page.keyboard.press('Enter')
      await opened.page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
      await act(opened.page)
      expect(opened.complaints).toEqual([])
      expect(
        opened.asked.filter((url) => !url.startsWith(service.opsUrl) && !url.startsWith('data:')),
      ).toEqual([])
    } finally {
      await opened.close()
    }
  }

  test('signs in, shows every page without a fault that axe finds, and is not wider than its window', async () => {
    for (const view of ['desktop', 'dark-phone'] as const) {
      await on(view, async (page) => {
        const places: readonly string[] = await page.evaluate(
          `[...document.querySelectorAll('nav a')].map((one) => one.getAttribute('href'))`,
        )
        expect(places.length).toBeGreaterThan(10)
        const further = [
          'projections/employers',
          `streams/policy-${tenant.policyId}`,
          'actions/rebuildProjection?name=employers',
        ].map((one) => `/console/${one}`)
        for (const path of [...places, ...further]) {
          await page.goto(`${service.opsUrl}${path}`)
          // colours differ by scheme, not by page
          if (view === 'desktop' || further.includes(path))
            expect([view, path, await faultsOf(page)]).toEqual([view, path, []])
          expect([view, path, await overflowOf(page)]).toEqual([view, path, 0])
          await picture(page, `console-${view}${path.replaceAll(/[^a-z]+/gi, '-')}`.slice(0, 60))
        }
      })
    }
  })

  test('is worked by keyboard alone and without scripts: a projection is rebuilt, and the session ended', async () => {
    await on(
      'desktop',
      async (page) => {
        await page.goto(`${service.opsUrl}/console/projections/employers`)
        await page.getByRole('link', { name: 'Rebuild', exact: true }).focus()
        await page.keyboard.press('Enter')
        await page.getByRole('heading', { name: 'Build a read model anew' }).waitFor()
        await page.getByLabel('Switch').selectOption('manual')
        await page.getByRole('button', { name: 'Rebuild' }).focus()
        await page.keyboard.press('Enter')
        await page.getByRole('heading', { name: 'Done: Rebuild' }).waitFor()
        await operate(service, 'POST', '/projections/employers/cancel', {})
        await page.getByRole('button', { name: 'Sign out' }).focus()
        await page.keyboard.press('Enter')
        await page.getByRole('heading', { name: 'Sign in' }).waitFor()
        await page.goto(`${service.opsUrl}/console/alerts`)
        await page.getByRole('heading', { name: 'Sign in' }).waitFor()
      },
      false,
    )
  })
})
