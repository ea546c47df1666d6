import { spawn } from 'node:child_process'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Frame, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { browserPath } from '../../../support/browser.ts'
import { newPartner, registerWebhook } from '../../../support/partners.ts'
import { faultsOf, type PayerBrowser, picture, startPayerBrowser } from '../../../support/payer-browser.ts'
import { postForm, TYPED } from '../../../support/payer-pages.ts'
import { enableCheckout, newSession, sessionBody } from '../../../support/payment-sessions.ts'
import { partner } from '../../../support/payments.ts'
import { operate, type SeededTenant, seedTenant, send } from '../../../support/seed.ts'
import { type SharedService, sharedService } from '../../../support/service.ts'
import { startReceiver } from '../../../support/webhook-receiver.ts'

let service: SharedService
let tenant: SeededTenant
/** Pages of partners and of others, on an origin of their own. */
let pages: { readonly port: number; readonly html: Map<string, string>; stop(): Promise<void> }

beforeAll(async () => {
  pages = await servePages()
  service = await sharedService()
  tenant = await seedTenant(service)
  await enableCheckout(service, tenant, { embed_origins: [origin()] })
})
afterAll(async () => {
  await pages?.stop()
})

const origin = () => `http://localhost:${pages.port}`
const session = (overrides: Readonly<Record<string, unknown>> = {}) =>
  newSession(service, tenant, { mode: 'embedded', ...overrides })
const shown = async (id: string) =>
  (await partner(service, tenant.clientHeaders, 'GET', `/payment-sessions/${id}`)).body.data
const frameUrl = (id: string) => `${service.portalUrl}/embed/${id}`

async function servePages() {
  const html = new Map<string, string>()
  const server: Server = createServer((request, response) => {
    const page = html.get(request.url!.split('?')[0]!)
    response.writeHead(page === undefined ? 404 : 200, { 'Content-Type': 'text/html; charset=utf-8' })
    response.end(page)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    port,
    html,
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** A page of the partner with a checkout in it; what it is told stands in `told`. */
function mountingPage({ id, client_secret }: { id: string; client_secret: string }): string {
  return `<!doctype html><title>Shop</title><link rel="icon" href="data:,"><h1>Shop</h1><div id="checkout"></div>
<script src="${service.portalUrl}/compstream.js"></script>
<script>
  const told = []
  const mounted = compstream.mount('#checkout', {
    session: ${JSON.stringify(id)}, clientSecret: ${JSON.stringify(client_secret)}, onStatus: (status) => told.push(status)
  })
</script>`
}

describe('the frame of an embedded session', () => {
  test('may be shown by the origins of the settings alone, and names nothing', async () => {
    const created = await session()
    const frame = await send(frameUrl(created.id))
    expect(frame.status).toBe(200)
    expect(frame.headers.get('content-security-policy')).toContain(`frame-ancestors ${origin()}`)
    expect(frame.headers.get('referrer-policy')).toBe('no-referrer')
    expect(frame.text).not.toMatch(/105\.00|Harbor|_secret_/)
    expect((await shown(created.id)).status).toBe('pending')
    const other = await seedTenant(service)
    await enableCheckout(service, other)
    const closed = await send(frameUrl((await newSession(service, other, { mode: 'embedded' })).id))
    expect(closed.headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
    expect(closed.headers.get('x-frame-options')).toBe('DENY')
  })

  test('is opened by the client secret, and by nothing else', async () => {
    const [created, other] = [await session(), await session()]
    const post = (fields: Record<string, string>, headers = {}) =>
      postForm(frameUrl(created.id), fields, headers)
    for (const client_secret of ['', 'x', other.client_secret, `${created.client_secret}x`]) {
      expect(await post({ client_secret })).toMatchObject({ status: 404 })
      expect(await post({ client_secret, option: 'card', card: 'succeeds', proof: '' })).toMatchObject({
        status: 404,
      })
    }
    expect((await shown(created.id)).status).toBe('pending')
    const { client_secret } = created
    expect(await post({ client_secret }, { Origin: origin() })).toMatchObject({ status: 403 })
    const opened = await post({ client_secret })
    expect([opened.status, opened.text]).toEqual([200, expect.stringContaining('$105.00')])
    expect(opened.text).not.toContain(client_secret)
    expect((await shown(created.id)).status).toBe('opened')
    const link = await newSession(service, tenant)
    for (const id of [link.id, '0'.repeat(24), 'x']) expect((await send(frameUrl(id))).status).toBe(404)
  })

  test('shows what went wrong where it may be shown', async () => {
    const { id } = await session()
    const errors = await Promise.all([
      postForm(frameUrl(id), { client_secret: 'wrong' }),
      postForm(frameUrl(id), { client_secret: 'wrong' }, { 'Sec-Fetch-Site': 'cross-site' }),
      postForm(frameUrl(id), {}, { 'Content-Type': 'text/plain' }),
    ])
    expect(errors.map(({ status }) => status)).toEqual([404, 403, 415])
    for (const { headers } of errors) {
      expect(headers.get('x-frame-options')).toBeNull()
      expect(headers.get('content-security-policy')).toContain(`frame-ancestors ${origin()}`)
    }
    const unknown = await send(frameUrl('0'.repeat(24)))
    expect([unknown.status, unknown.headers.get('x-frame-options')]).toEqual([404, 'DENY'])
  })

  test('shows the truth when it is over', async () => {
    const { id, client_secret } = await session()
    await operate(service, 'POST', `/card-processor/${id}/succeed`, {})
    const { text } = await postForm(frameUrl(id), { client_secret })
    expect(text).toContain('<h1>Paid</h1>')
    const again = await postForm(frameUrl(id), { client_secret, option: 'card', card: 'succeeds' })
    expect(again.status).toBe(303)
    expect((await shown(id)).status).toBe('paid')
  })
})

describe('compstream.js', () => {
  test('is a script that any page may load', async () => {
    const script = await send(`${service.portalUrl}/compstream.js`)
    expect([script.status, script.headers.get('content-type')]).toEqual([
      200,
      'text/javascript; charset=utf-8',
    ])
    expect(script.headers.get('cache-control')).toBe('public, max-age=3600')
    expect(script.headers.get('cross-origin-resource-policy')).toBe('cross-origin')
  })
})

describe.skipIf(browserPath === null)('an embedded checkout in a real browser (needs chromium)', () => {
  let browser: PayerBrowser
  beforeAll(async () => {
    browser = await startPayerBrowser(['evil.test'])
  })
  afterAll(() => browser?.close())

  const told = (page: Page) => page.evaluate<string[]>('told')
  const frameOf = (page: Page, id: string) => page.frames().find((one) => one.url() === frameUrl(id))!
  const choose = async (frame: Frame, card: string) => {
    await frame.locator('#card summary').click()
    await frame.getByText(card).click()
    await frame.getByRole('button', { name: /by card/ }).click()
  }

  test('is paid on another origin, and the page is told', async () => {
    const receiver = await startReceiver()
    try {
      const key = await newPartner(service, tenant.tenantId)
      await registerWebhook(key, receiver.url, ['payment.completed'])
      const created = await session({ description: 'Policy 2026' })
      pages.html.set('/shop', mountingPage(created))
      const { page, complaints, asked, close } = await browser.open(`${origin()}/shop`)
      const frame = page.frameLocator('iframe')
      await frame.getByRole('heading', { name: '$105.00' }).waitFor()
      expect(await told(page)).toEqual(['opened'])
      await picture(page, 'embedded-open')
      const inner = frameOf(page, created.id)
      expect(await faultsOf(inner as unknown as Page)).toEqual([])
      // as high as what it shows
      const inside = await inner.evaluate<number>('document.body.offsetHeight')
      expect(inside).toBeGreaterThan(200)
      await page.waitForFunction(`document.querySelector('iframe').offsetHeight === ${inside}`)
      expect(await inner.evaluate('document.documentElement.scrollHeight - innerHeight')).toBe(0)
      await inner.locator('#card summary').click()
      await page.waitForFunction(`document.querySelector('iframe').offsetHeight > ${inside}`)
      await inner.locator('#card summary').click()
      await page.waitForFunction(`document.querySelector('iframe').offsetHeight === ${inside}`)
      await choose(inner, 'the card is declined')
      await frame.getByText('The last card payment was declined').waitFor()
      await inner.getByText('the payment succeeds').click()
      await inner.getByRole('button', { name: /by card/ }).click()
      await frame.getByRole('heading', { name: 'Paid' }).waitFor()
      await page.waitForFunction(`told.at(-1) === 'paid'`)
      expect(await told(page)).toEqual(['opened', 'paid'])
      await picture(page, 'embedded-paid')
      expect(JSON.parse((await receiver.next()).body.toString())).toMatchObject({
        payment_session_id: created.id,
        amount_paid_cents: 10_500,
      })
      // no secret is in any address, and nobody else was asked
      expect(asked.join()).not.toContain('_secret_')
      const hosts = new Set(asked.map((one) => new URL(one).origin))
      expect([...hosts].filter((one) => one !== 'null')).toEqual([origin(), service.portalUrl])
      // a page that is loaded again shows the truth
      await page.reload()
      await frame.getByRole('heading', { name: 'Paid' }).waitFor()
      expect(await told(page)).toEqual(['paid'])
      await page.evaluate('mounted.unmount()')
      expect(await page.locator('iframe').count()).toBe(0)
      expect(complaints).toEqual([])
      await close()
    } finally {
      await receiver.stop()
    }
  })

  test('is scheduled by the bank option', async () => {
    const created = await session()
    pages.html.set('/bank', mountingPage(created))
    const { page, complaints, close } = await browser.open(`${origin()}/bank`, 'phone')
    const frame = page.frameLocator('iframe')
    await frame.locator('#bank summary').click()
    await frame.getByLabel('Name on the account').fill(TYPED.account_holder_name)
    await frame.getByLabel('Routing number').fill(TYPED.routing_number)
    await frame.getByLabel('Account number').fill(TYPED.account_number)
    await frame.getByLabel('I authorize').check()
    await frame.getByRole('button', { name: /bank|authorize/i }).click()
    await page.waitForFunction(`told.at(-1) === 'scheduled'`)
    expect((await shown(created.id)).status).toBe('scheduled')
    expect(complaints).toEqual([])
    await close()
  })

  test('is not shown to a stranger', async () => {
    const created = await session()
    pages.html.set('/stranger', mountingPage(created))
    const { page, complaints, close } = await browser.open(`http://evil.test:${pages.port}/stranger`)
    await expect.poll(() => complaints.join()).toContain('frame-ancestors')
    expect(await told(page)).toEqual([])
    expect((await shown(created.id)).status).toBe('pending')
    // nor within an allowed page that a stranger shows
    pages.html.set('/outer', `<!doctype html><iframe src="${origin()}/stranger"></iframe>`)
    const outer = await browser.open(`http://evil.test:${pages.port}/outer`)
    await expect.poll(() => outer.complaints.join()).toContain('frame-ancestors')
    expect((await shown(created.id)).status).toBe('pending')
    await close()
    await outer.close()
  })

  test('believes no forged message', async () => {
    const [created, other] = [await session(), await session()]
    // another frame of the page, of whoever, forges messages to the page and to the frame
    pages.html.set(
      '/forger',
      `<!doctype html><script>
        const forge = () => {
          const [id, other] = ${JSON.stringify([created.id, other.id])}
          for (const type of ['ready', 'shown', 'resized']) parent.postMessage({ type: 'compstream:' + type, session: id, status: 'paid', proof: 'p', height: 7 }, '*')
          for (let at = 0; at < parent.frames.length; at += 1) {
            for (const session of [id, other]) parent.frames[at].postMessage({ type: 'compstream:mount', session, client_secret: 'forged', proof: 'forged' }, '*')
          }
        }
        const forging = setInterval(forge, 1)
        addEventListener('message', ({ data }) => { if (data === 'stop') clearInterval(forging) })
      </script>`,
    )
    pages.html.set(
      '/victim',
      mountingPage(created).replace(
        '<div',
        `<iframe id="forger" src="http://evil.test:${pages.port}/forger"></iframe><div`,
      ),
    )
    const { page, close } = await browser.open(`${origin()}/victim`)
    const checkout = page.frameLocator('#checkout iframe')
    await checkout.getByRole('heading', { name: '$105.00' }).waitFor()
    expect(await told(page)).toEqual(['opened'])
    expect(await page.evaluate(`document.querySelector('#checkout iframe').offsetHeight`)).toBeGreaterThan(
      100,
    )
    expect((await shown(created.id)).status).toBe('opened')
    await close()
  })

  test('is what the example shows', async () => {
    const example = spawn(process.execPath, ['examples/embedded-checkout.mjs', '0'], {
      env: {
        PATH: process.env.PATH,
        COMPSTREAM_PAYMENTS_URL: service.paymentsUrl,
        COMPSTREAM_PORTAL_URL: service.portalUrl,
        COMPSTREAM_CLIENT_ID: tenant.clientId,
        COMPSTREAM_CLIENT_SECRET: tenant.clientSecret,
        COMPSTREAM_SESSION: JSON.stringify(sessionBody(tenant)),
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    try {
      const said = await new Promise<string>((resolve) =>
        example.stdout.once('data', (text) => resolve(String(text))),
      )
      const address = /http:\S+/.exec(said)![0]
      await enableCheckout(service, tenant, { embed_origins: [origin(), address] })
      const { page, complaints, close } = await browser.open(address)
      const frame = page.frameLocator('iframe')
      await frame.getByRole('heading', { name: '$105.00' }).waitFor()
      await frame.locator('#card summary').click()
      await frame.getByRole('button', { name: /by card/ }).click()
      await page.getByText('Thank you for your payment.').waitFor()
      expect(complaints.filter((one) => !one.includes('favicon'))).toEqual([])
      await close()
    } finally {
      example.kill()
    }
  })
})
