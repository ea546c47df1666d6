// @module-tag once
import pg from 'pg'
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

/** The console in a real browser. Pictures of it are kept in node_modules/.cache/payer-pages; those named docs-… are in docs/images. */

describe.skipIf(browserPath === null)('the console in a real browser (needs chromium)', () => {
  let service: SharedService
  let tenant: SeededTenant
  let browser: PayerBrowser
  beforeAll(async () => {
    service = await sharedService()
    tenant = await seedTenant(service)
    for (const legal_name of ['Corner Bakery LLC', 'Corner Bakery and Cafe LLC']) {
      await operate(service, 'PATCH', `/employers/${tenant.employerId}`, { legal_name })
    }
    await sql(
      `INSERT INTO runtime.throughput (at, seconds, events, events_behind, seconds_behind)
       SELECT now() - n * interval '30 seconds', 30, 300 + 240 * sin(n / 90.0) + 40 * sin(n * 1.7),
              greatest(0, 40 * sin(n / 40.0)), greatest(0, 2 * sin(n / 40.0))
         FROM generate_series(1, 2870) AS n ON CONFLICT DO NOTHING`,
      `INSERT INTO runtime.parked_streams
         (projection, generation, stream, position, revision, type, category, message, attempts)
       SELECT projection, generation, 'employer-${tenant.employerId}', 1, 0, 'EmployerRegistered', 'handler',
              'duplicate key value violates unique constraint', 3
         FROM runtime.projections WHERE projection = 'employers' AND role = 'live'`,
    )
    browser = await startPayerBrowser()
  })
  afterAll(async () => {
    await browser?.close()
    await sql('DELETE FROM runtime.parked_streams', 'DELETE FROM runtime.throughput')
  })

  async function sql(...statements: readonly string[]): Promise<void> {
    const client = new pg.Client(service.databaseUrl)
    await client.connect()
    for (const statement of statements) await client.query(statement)
    await client.end()
  }

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
          `stories/employer/${tenant.employerId}`,
          `stories/employer/${tenant.employerId}?as_of=2999-01-01T00:00`,
          'actions/rebuildProjection?name=employers',
        ].map((one) => `/console/${one}`)
        for (const path of [...places, ...further]) {
          const answer = await page.goto(`${service.opsUrl}${path}`)
          expect((await answer!.body()).length).toBeLessThan(100 * 1024)
          // colours differ by scheme, not by page
          if (view === 'desktop' || further.includes(path) || path === '/console')
            expect([view, path, await faultsOf(page)]).toEqual([view, path, []])
          expect([view, path, await overflowOf(page)]).toEqual([view, path, 0])
          await picture(page, `console-${view}${path.replaceAll(/[^a-z]+/gi, '-')}`.slice(0, 60))
        }
      })
    }
  })

  test('is shown in the documentation as it is', async () => {
    await on('desktop', async (page) => {
      await page.setViewportSize({ width: 1000, height: 500 })
      const story = `/console/stories/employer/${tenant.employerId}`
      const pictures = {
        overview: '/console',
        'dead-letters': '/console/dead-letters',
        audit: '/console/audit',
        story,
      }
      for (const [name, path] of Object.entries(pictures)) {
        await page.goto(`${service.opsUrl}${path}`)
        if (name === 'story') await page.getByRole('link', { name: 'Previous event' }).click()
        const shown = { overview: '.tiles li:nth-child(5)', story: 'section' }[name]
        if (shown) await page.evaluate(`document.querySelector('${shown}').scrollIntoView()`)
        await picture(page, `docs-console-${name}`, false)
      }
    })
  })

  test('shows a story as of an event that the keyboard moved to, and tries a dead letter again after a dry run', async () => {
    await on(
      'phone',
      async (page) => {
        await page.goto(`${service.opsUrl}/console/stories/employer/${tenant.employerId}`)
        const slider = page.getByRole('slider')
        const last = Number(await slider.inputValue())
        await slider.focus()
        await page.keyboard.press('ArrowLeft')
        await page.keyboard.press('Tab')
        await page.keyboard.press('Enter')
        await page.getByRole('heading', { name: 'What has changed since' }).waitFor()
        expect(Number(await page.getByRole('slider').inputValue())).toBe(last - 1)

        await page.goto(`${service.opsUrl}/console/dead-letters`)
        await page.getByRole('link', { name: 'Dry run' }).focus()
        await page.keyboard.press('Enter')
        await page.getByRole('button', { name: 'Retry dead letters' }).focus()
        await page.keyboard.press('Enter')
        await page.getByRole('heading', { name: 'Dry run: Retry dead letters' }).waitFor()
        await page.getByRole('link', { name: 'Retry dead letters' }).focus()
        await page.keyboard.press('Enter')
        await page.getByRole('button', { name: 'Retry dead letters' }).waitFor()
        expect(page.url()).not.toContain('dry_run')
      },
      false,
    )
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
