import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { browserPath } from '../../../support/browser.ts'
import { newPartner, registerWebhook } from '../../../support/partners.ts'
import {
  faultsOf,
  type Opened,
  overflowOf,
  type PayerBrowser,
  picture,
  startPayerBrowser,
  VIEWS,
  type View,
} from '../../../support/payer-browser.ts'
import { hiddenFields, sessionsInAllStates, TYPED } from '../../../support/payer-pages.ts'
import { enableCheckout, newSession } from '../../../support/payment-sessions.ts'
import { partner } from '../../../support/payments.ts'
import { operate, type SeededTenant, seedPolicy, seedTenant, send } from '../../../support/seed.ts'
import { type RunningService, startService } from '../../../support/service.ts'
import { StripeStandIn } from '../../../support/stripe-stand-in.ts'
import { type Receiver, startReceiver } from '../../../support/webhook-receiver.ts'

/** The hosted pages of sessions in a real browser. Pictures of them are kept in node_modules/.cache/payer-pages. */

describe.skipIf(browserPath === null)('the page of a session in a real browser (needs chromium)', () => {
  let service: RunningService
  let tenant: SeededTenant
  let browser: PayerBrowser
  let receiver: Receiver
  let states: Readonly<Record<string, string>>
  beforeAll(async () => {
    service = await startService()
    tenant = await seedTenant(service)
    await enableCheckout(service, tenant, { accent_color: '#0b7a75' })
    states = await sessionsInAllStates(service, tenant)
    browser = await startPayerBrowser(['pay.test', 'evil.test'])
    receiver = await startReceiver()
  })
  afterAll(async () => {
    await browser?.close()
    await receiver?.stop()
    await service?.stop()
  })

  const session = (overrides: Record<string, unknown> = {}) => newSession(service, tenant, overrides)
  const shown = async (id: string) =>
    (await partner(service, tenant.clientHeaders, 'GET', `/payment-sessions/${id}`)).body.data
  const ops = (path: string, body: unknown = {}) => operate(service, 'POST', path, body)
  const heading = (page: Page) => page.locator('h1').innerText()

  /** Opens a page, and closes it again whatever happens; nothing may have been complained of. */
  async function on(
    url: string,
    act: (opened: Opened) => Promise<void>,
    view: View = 'desktop',
    options: Parameters<PayerBrowser['open']>[2] = {},
  ): Promise<void> {
    const opened = await browser.open(url, view, options)
    try {
      await act(opened)
      expect(opened.complaints).toEqual([])
    } finally {
      await opened.close()
    }
  }

  async function fillIn(page: Page): Promise<void> {
    await page.getByLabel('Name on the account').fill(TYPED.account_holder_name)
    await page.getByLabel('Routing number').fill(TYPED.routing_number)
    await page.getByLabel('Account number').fill(TYPED.account_number)
    await page.getByLabel('I authorize').check()
  }

  describe('is found without fault by axe, and within its window', () => {
    test('which finds what is wrong', async () => {
      await on(states.paid!, async ({ page }) => {
        expect(await faultsOf(page)).toEqual([])
        await page.evaluate(`document.querySelector('h1').outerHTML = '<img src="data:,">'`)
        const faults = (await faultsOf(page)).join('\n')
        expect(faults).toContain('image-alt')
      })
    })

    // the narrowest view and the dark one have what the others have
    for (const view of Object.keys(VIEWS) as View[])
      test(`in every state: ${view}`, { tags: ['phone', 'dark'].includes(view) ? [] : 'long' }, async () => {
        await on(
          states.open!,
          async ({ page }) => {
            const look = async (name: string) => {
              await picture(page, `${name}-${view}`)
              expect([name, await faultsOf(page), await overflowOf(page)]).toEqual([name, [], 0])
            }
            for (const [state, url] of Object.entries(states)) {
              await page.goto(url)
              await look(state)
              for (const way of ['card', 'bank']) {
                const option = page.locator(`details#${way}:not([open]) > summary`)
                if ((await option.count()) === 0) continue
                await option.click()
                await look(`${state}, ${way}`)
              }
            }
          },
          view,
        )
      })

    // one on each side of what can be read
    for (const accent_color of ['#ffffff', '#000000', '#ffff00', '#777777', '#eef1f6', '#12151b', '#ff0000'])
      test(`with the accent colour ${accent_color}`, {
        tags: ['#ffff00', '#12151b'].includes(accent_color) ? [] : 'long',
      }, async () => {
        const own = await seedTenant(service)
        await enableCheckout(service, own, { accent_color })
        const { url } = await newSession(service, own)
        for (const view of ['desktop', 'dark'] as const) {
          await on(
            url,
            async ({ page }) => {
              await page.locator('#bank > summary').click()
              await picture(page, `accent ${accent_color.slice(1)}-${view}`)
              expect([view, await faultsOf(page)]).toEqual([view, []])
            },
            view,
          )
        }
      })

    test('with faults in the form, which are told and reached', async () => {
      const { url } = await session()
      await on(url, async ({ page, complaints }) => {
        await page.locator('#bank > summary').click()
        await fillIn(page)
        // what the browser itself would not let pass
        await page.evaluate(`document.getElementById('bank-form').noValidate = true`)
        await page.getByLabel('Routing number').fill('021000022')
        await page.getByLabel('Account number').fill('12')
        await page.getByRole('button', { name: 'from bank account' }).click()
        const alert = page.getByRole('alert')
        await alert.waitFor()
        await picture(page, 'faults-desktop')
        expect(await alert.evaluate((element) => element === element.ownerDocument.activeElement)).toBe(true)
        expect(await page.getByLabel('Name on the account').inputValue()).toBe(TYPED.account_holder_name)
        expect(await page.getByLabel('Account number').inputValue()).toBe('')
        expect(await faultsOf(page)).toEqual([])
        await alert.getByRole('link').first().click()
        expect(await page.evaluate('document.activeElement.id')).toBe('routing_number')
        // the browser says so, too
        expect(complaints.splice(0)).toEqual([expect.stringContaining('status of 400')])
      })
    })
  })

  test('is walked by keyboard alone', async () => {
    const { id, url } = await session()
    await on(url, async ({ page }) => {
      const name = () =>
        page.evaluate(`(document.activeElement.labels?.[0] ?? document.activeElement).textContent.trim()`)
      const press = async (key: string) => {
        await page.keyboard.press(key)
        return name()
      }
      expect(await press('Tab')).toContain('Card')
      expect(await press('Tab')).toContain('Bank account')
      await press('Enter')
      expect(await press('Tab')).toBe('Name on the account')
      await page.keyboard.type('Tidewater Joinery LLC')
      expect(await press('Tab')).toBe('Routing number')
      await page.keyboard.type('021000021')
      expect(await press('Tab')).toBe('Account number')
      await page.keyboard.type('000123456789')
      expect(await press('Tab')).toBe('Checking')
      expect(await press('ArrowRight')).toBe('Savings')
      expect(await press('Tab')).toContain('Bank (optional)')
      expect(await press('Tab')).toContain('I authorize Harbor Premium Pay to debit $105.00')
      await press('Space')
      const ring = await page.evaluate(`getComputedStyle(document.activeElement).outlineStyle`)
      expect(ring).toBe('solid')
      expect(await press('Tab')).toBe('Pay $105.00 from bank account')
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: 'Payment scheduled' }).waitFor()
    })
    expect((await shown(id)).status).toBe('scheduled')
  })

  test('works without scripts, by bank and by test card', async () => {
    const plain = { javaScriptEnabled: false }
    const byBank = await session()
    // under a name without a certificate browsers do not say where a form comes from
    const url = byBank.url.replace(/\/\/[^:]+/, '//pay.test')
    await on(
      url,
      async ({ page }) => {
        expect(await page.getByText('Premium', { exact: true }).isVisible()).toBe(true)
        await page.locator('#bank > summary').click()
        await fillIn(page)
        await page.getByRole('button', { name: 'from bank account' }).click()
        expect(await heading(page)).toBe('Payment scheduled')
        expect(page.url()).toBe(url)
        await page.reload()
        expect(await heading(page)).toBe('Payment scheduled')
      },
      'phone',
      plain,
    )
    expect((await shown(byBank.id)).status).toBe('scheduled')
    const byCard = await session()
    await on(
      byCard.url,
      async ({ page }) => {
        await page.locator('#card > summary').click()
        await page.getByLabel('the card is declined').check()
        await page.getByRole('button', { name: 'by card' }).click()
        expect(await page.getByText('The last card payment was declined').isVisible()).toBe(true)
        await page.getByRole('button', { name: 'by card' }).click()
        expect(await heading(page)).toBe('Paid')
      },
      'desktop',
      plain,
    )
    expect((await shown(byCard.id)).status).toBe('paid')
  })

  test('asks nobody but its own host for anything, and tells nobody its address', async () => {
    const { url } = await session()
    await on(url, async ({ page, asked }) => {
      await page.locator('#card > summary').click()
      await page.getByRole('button', { name: 'by card' }).click()
      expect(await heading(page)).toBe('Paid')
      expect(asked.filter((one) => !one.startsWith('data:')).every((one) => one === url)).toBe(true)
    })
  })

  test('shows the truth to who comes back, goes back, or has it open twice', async () => {
    const { id, url } = await session()
    await on(url, async ({ page: first }) => {
      const second = await first.context().newPage()
      await second.goto(url)
      await second.locator('#card > summary').click()
      await first.locator('#card > summary').click()
      await first.getByRole('button', { name: 'by card' }).click()
      expect(await heading(first)).toBe('Paid')
      // pays again in the tab that was left open
      await second.getByRole('button', { name: 'by card' }).click()
      expect(await heading(second)).toBe('Paid')
      await first.goto('about:blank')
      await first.goBack()
      await first.getByRole('heading', { name: 'Paid' }).waitFor()
    })
    const events = await operate(service, 'GET', `/streams/paymentSession-${id}`)
    expect(JSON.stringify(events).match(/PaymentSessionPaid/g)).toHaveLength(1)
    const other = await session()
    await on(other.url, async ({ page }) => {
      await partner(service, tenant.clientHeaders, 'DELETE', `/payment-sessions/${other.id}`)
      await page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`)
      await page.getByRole('heading', { name: 'cancelled' }).waitFor()
    })
  })

  describe('under attack', () => {
    let server: Server
    let port: number
    let body = ''
    beforeAll(async () => {
      server = createServer((_request, response) => {
        response.setHeader('Content-Type', 'text/html')
        response.end(`<!doctype html><link rel="icon" href="data:,">${body}`)
      })
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      port = (server.address() as AddressInfo).port
      return () => server.close()
    })

    test('is framed by nobody but whom the settings name', async () => {
      const own = await seedTenant(service)
      await enableCheckout(service, own, { embed_origins: [`http://localhost:${port}`] })
      const embedded = await newSession(service, own)
      const closed = await session()
      const framed = async (origin: string, url: string) => {
        body = `<iframe src="${url}"></iframe>`
        const opened = await browser.open(`http://${origin}:${port}/`)
        await opened.page.waitForLoadState('networkidle')
        const frame = opened.page.frames()[1]!
        const count = await frame.locator('h1.ask').count()
        await opened.close()
        return count
      }
      expect(await framed('localhost', embedded.url)).toBe(1)
      expect(await framed('evil.test', embedded.url)).toBe(0)
      expect(await framed('localhost', closed.url)).toBe(0)
    })

    test('takes no form that another page sends', async () => {
      const { id, url } = await session()
      const fields = { ...TYPED, ...hiddenFields((await send(url)).text, 'bank') }
      const inputs = Object.entries(fields).map(([name, value]) => `<input name="${name}" value="${value}">`)
      for (const policy of ['no-referrer', 'unsafe-url']) {
        body = `<meta name="referrer" content="${policy}"><form method="post" action="${url}">${inputs.join('')}<button>x</button></form>`
        const { page, close } = await browser.open(`http://evil.test:${port}/`)
        await page.getByRole('button').click()
        await page.getByRole('heading', { name: 'Forbidden' }).waitFor()
        await close()
      }
      expect((await shown(id)).status).toBe('opened')
    })

    test('runs nothing that somebody wrote', async () => {
      const evil = `"'><script>document.title='owned'</script><img src=x onerror="document.title='owned'">`
      const own = await seedTenant(service)
      await enableCheckout(service, own, { display_name: evil })
      const { url } = await newSession(service, own, {
        amount_cents: undefined,
        premium_cents: 10_000,
        fee_cents: 500,
        description: evil,
        fee_breakdown: [{ label: evil, amount_cents: 500 }],
      })
      await on(url, async ({ page, asked }) => {
        expect(await page.title()).not.toBe('owned')
        expect(await page.getByText(evil, { exact: true }).count()).toBeGreaterThan(1)
        expect(asked).not.toContainEqual(expect.stringMatching(/\/x$/))
        expect(await faultsOf(page)).toEqual([])
      })
    })
  })

  describe('from invitation to webhook', () => {
    /** Sends an invitation. @returns the session, with the address of its page as the email has it. */
    async function invited(of: SeededTenant, overrides: Record<string, unknown> = {}) {
      const email = `${Math.random().toString(36).slice(2)}@payer.example`
      const created = await newSession(service, of, {
        customer: { name: 'Tidewater Joinery LLC', email },
        deliver: { email: true },
        ...overrides,
      })
      const [letter] = await operate(service, 'GET', `/outbox?channel=email&to=${encodeURIComponent(email)}`)
      const url = /^https?:\/\/\S+$/m.exec(letter.text)![0]
      expect(url).toBe(created.url)
      return { id: created.id as string, url }
    }
    async function subscribed(path: string) {
      const own = await seedTenant(service)
      await enableCheckout(service, own)
      const subscriber = await newPartner(service, own.tenantId, { environment: 'live' })
      await registerWebhook(subscriber, `${receiver.url}${path}`)
      return own
    }
    const told = async (path: string, type: string) => {
      const { body } = await receiver.next(
        (one) => one.path === path && one.headers['x-webhook-event'] === type,
      )
      return JSON.parse(String(body))
    }

    test('from a bank account', async () => {
      const own = await subscribed('/bank')
      const { carrier_id } = await ops('/carriers', {
        tenant_id: own.tenantId,
        name: 'Direct',
        settlement_type: 'direct',
      })
      const { policyId } = await seedPolicy(service, { employerId: own.employerId, carrierId: carrier_id })
      const { id, url } = await invited(own, { carrier_id, policy_id: policyId })
      await on(
        url,
        async ({ page }) => {
          await page.locator('#bank > summary').click()
          await fillIn(page)
          await page.getByRole('button', { name: 'from bank account' }).click()
          expect(await heading(page)).toBe('Payment scheduled')
          await ops('/debit-batches')
          const { leg_id } = (await partner(service, own.clientHeaders, 'GET', `/payment-sessions/${id}`))
            .body.data
          await ops(`/bank-rail/${leg_id}/acknowledge`)
          await page.reload()
          expect(await heading(page)).toBe('Payment processing')
          await ops(`/bank-rail/${leg_id}/settle`, {})
          await operate(service, 'POST', '/drain')
          await page.reload()
          expect(await heading(page)).toBe('Paid')
          expect(await page.locator('dl').innerText()).toContain('ending in 6789')
          expect(await told('/bank', 'payment.debit_settled')).toMatchObject({
            payment_session_id: id,
            leg_id,
          })
        },
        'phone',
      )
    })

    test('by a plan, to its last installment', async () => {
      const own = await subscribed('/plan')
      const { id, url } = await invited(own, {
        amount_cents: 100_000,
        total_installments: 3,
        down_payment_percent: 10,
      })
      await on(url, async ({ page }) => {
        expect(await heading(page)).toContain('$100.00')
        await fillIn(page)
        await page.getByRole('button', { name: 'from bank account' }).click()
        expect(await heading(page)).toBe('Payment plan scheduled')
        const { leg_id } = (await partner(service, own.clientHeaders, 'GET', `/payment-sessions/${id}`)).body
          .data
        const collect = async (debitId: string) => {
          await ops('/debit-batches')
          await ops(`/bank-rail/${debitId}/acknowledge`)
          await ops(`/bank-rail/${debitId}/settle`, {})
          await operate(service, 'POST', '/drain')
        }
        await collect(leg_id)
        for (const _number of [1, 2, 3]) {
          await ops('/clock/advance', { seconds: 31 * 86_400 })
          const minted = await told('/plan', 'payment.debit_minted')
          expect(minted.amount_cents).toBe(30_000)
          await collect(minted.leg_id)
        }
        await page.reload()
        await picture(page, 'plan paid-desktop')
        expect(await heading(page)).toBe('Payment plan paid')
        expect(await page.locator('tbody .pill').allInnerTexts()).toEqual(['Paid', 'Paid', 'Paid'])
        expect(await faultsOf(page)).toEqual([])
      })
    })
  })

  describe('whose cards are taken by Stripe', () => {
    let stripe: StripeStandIn
    let url: string
    beforeAll(async () => {
      stripe = await StripeStandIn.start()
      const own = await stripe.startService()
      const seller = await seedTenant(own)
      await enableCheckout(own, seller)
      url = (await newSession(own, seller)).url
      return () => stripe.stop()
    })

    /** Stands in for Stripe's script, and for what the checkout is answered with. */
    async function withScript(page: Page, script: string): Promise<void> {
      await page.route('https://js.stripe.com/**', (route) =>
        route.fulfill({ contentType: 'text/javascript', body: script }),
      )
    }
    const SCRIPT = `window.Stripe = (key) => ({
      createEmbeddedCheckoutPage: async ({ fetchClientSecret, onComplete }) => {
        const secret = await fetchClientSecret()
        window.complete = onComplete
        return {
          mount: (at) => { document.querySelector(at).textContent = 'Stripe form of ' + key + ' for ' + secret },
          destroy: () => { document.querySelector('#card-form').textContent = '' },
        }
      },
    })`

    test('loads the script of others once card is chosen, and mounts the checkout', async () => {
      const opened = await browser.open(url)
      const { page, asked, complaints } = opened
      const foreign = () => asked.filter((one) => !one.startsWith(url) && !one.startsWith('data:'))
      expect(await page.getByText('Test mode').count()).toBe(0)
      await withScript(page, SCRIPT)
      await page.locator('#bank > summary').click()
      expect(foreign()).toEqual([])
      await page.route(url, async (route) => {
        if (route.request().method() !== 'POST') return route.continue()
        const body = new URLSearchParams(route.request().postData()!)
        expect([body.get('option'), body.get('proof')]).toEqual([
          'checkout',
          expect.stringMatching(/^\w{24}$/),
        ])
        return route.fulfill({ json: { client_secret: 'cs_1_secret_2', publishable_key: 'pk_test_1' } })
      })
      await page.locator('#card > summary').click()
      await page.getByText('Stripe form of pk_test_1 for cs_1_secret_2').waitFor()
      expect(foreign()).toEqual(['https://js.stripe.com/endive/stripe.js'])
      expect(await faultsOf(page)).toEqual([])
      expect(complaints).toEqual([])
      await page.evaluate('complete()')
      await page.getByText('Waiting for it to be confirmed').waitFor()
      await picture(page, 'stripe confirming-desktop')
      await opened.close()
    })

    test('says in words of its own that the checkout did not begin', async () => {
      const { page, close } = await browser.open(url)
      await withScript(page, SCRIPT)
      const answers = [
        { status: 429, contentType: 'text/html', body: '<!doctype html><h1>Too many requests</h1>' },
        { status: 200, contentType: 'text/html', body: '<!doctype html><h1>Log in</h1>' },
        { status: 502, json: { message: 'The processor is away.' } },
        { status: 502, contentType: 'text/html', body: '<h1>Bad gateway</h1>' },
        null,
      ]
      const said: string[] = []
      const left = [...answers]
      await page.route(url, (route) => {
        if (route.request().method() !== 'POST') return route.continue()
        const next = left.shift()
        return next ? route.fulfill(next) : route.abort()
      })
      for (const _ of answers) {
        await page.evaluate(`document.getElementById('card-state').textContent = ''`)
        await page.locator('#card > summary').click()
        const state = page.locator('#card-state')
        await expect.poll(() => state.textContent()).not.toMatch(/^$|^Loading/)
        said.push((await state.textContent())!)
        await page.locator('#card > summary').click()
      }
      const own =
        'The card form cannot be shown at the moment. Check your connection, and try again in a minute.'
      expect(said).toEqual([own, own, 'The processor is away.', own, own])
      await close()
    })

    test('says so where the script cannot be had, or nothing can be asked', async () => {
      const opened = await browser.open(url)
      await opened.page.route('https://js.stripe.com/**', (route) => route.abort())
      await opened.page.locator('#card > summary').click()
      await opened.page.getByText('The card form could not be loaded').waitFor()
      await opened.close()
      await on(
        url,
        async ({ page }) => {
          await page.locator('#card > summary').click()
          expect(await page.getByText('Paying by card needs JavaScript').isVisible()).toBe(true)
          await picture(page, 'stripe without scripts-desktop')
        },
        'desktop',
        { javaScriptEnabled: false },
      )
    })
  })
})
