import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type NameServer, startNameServer } from '../../../support/name-server.ts'
import { askUnder } from '../../../support/payer-pages.ts'
import {
  CHECKOUT,
  enableCheckout,
  newSession,
  sessionBody,
  tokenOf,
} from '../../../support/payment-sessions.ts'
import { newLink, partner } from '../../../support/payments.ts'
import {
  askOperator,
  operate,
  type SeedableService,
  type SeededTenant,
  seedTenant,
  send,
} from '../../../support/seed.ts'
import {
  type RunningService,
  type SharedService,
  sharedService,
  startProcess,
} from '../../../support/service.ts'
import { type Receiver, type ReceiverAnswer, startReceiver } from '../../../support/webhook-receiver.ts'

const DAY_S = 86_400
/** An image of one pixel. */
const GIF = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64')

let service: SharedService
/** A partner's own server. */
let theirs: Receiver

beforeAll(async () => {
  service = await sharedService()
  theirs = await startReceiver()
})
afterAll(() => theirs?.stop())

const checkoutOf = (one: Pick<SeededTenant, 'tenantId'>) =>
  operate(service, 'GET', `/tenants/${one.tenantId}/checkout`)
const verify = (one: Pick<SeededTenant, 'tenantId'>, body: unknown = {}, at: SeedableService = service) =>
  askOperator(at, 'POST', `/tenants/${one.tenantId}/checkout/verify-web-address`, body)
const drain = () => operate(service, 'POST', '/drain')

/** A tenant that sells by sessions. */
async function seller(settings: Readonly<Record<string, unknown>> = {}): Promise<SeededTenant> {
  const tenant = await seedTenant(service)
  await enableCheckout(service, tenant, settings)
  return tenant
}

const under = (host: string, path: string, form?: string) => askUnder(service.portalUrl, host, path, form)

test.each([
  ['checkout', { display_name: 'Tidewater', web_address: 'pay.tidewater.example' }, 'config_version'],
  ['financing', { invitations_enabled: true }, 'tenant_id'],
])(
  'settings of the %s can be set as they are shown, what is only shown included',
  async (which, change, fixed) => {
    const { tenantId } = await seller({ web_address: `${randomUUID()}.example` })
    const path = `/tenants/${tenantId}/${which}`
    const shown = await operate(service, 'GET', path)
    expect(await operate(service, 'PUT', path, { ...shown, ...change })).toMatchObject(change)
    const refused = await askOperator(service, 'PUT', path, { [fixed]: 'other' })
    expect([refused.status, refused.body.message]).toEqual([400, `${fixed} cannot be changed`])
  },
)

/** A page that everybody's portal has: that of a link. */
const linkIdOf = async (tenant: SeededTenant): Promise<string> => (await newLink(service, tenant))._id

describe('a logo', () => {
  let tenant: SeededTenant
  let logos = 0
  beforeAll(async () => {
    tenant = await seedTenant(service)
  })
  /** Another address each time. */
  const setLogo = async (logo_url = `${theirs.url}/${logos++}.gif`) => {
    await enableCheckout(service, tenant, { logo_url })
    await drain()
  }
  const image = (body: Buffer): ReceiverAnswer => ({
    status: 200,
    headers: { 'Content-Type': 'text/html' },
    body: body as unknown as string,
  })

  test('is copied, and served from the portal for ever', async () => {
    theirs.answerWith(image(GIF))
    await setLogo()
    expect(await checkoutOf(tenant)).toMatchObject({ logo_copied: true, logo_problem: null })
    const page = await send(
      `${service.paymentsUrl}/public/payment-sessions/${tokenOf(await newSession(service, tenant))}`,
    )
    const { logo_url } = page.body.data.seller
    expect(logo_url).toMatch(new RegExp(`^${service.portalUrl}/logos/[0-9a-f]{64}$`))
    const served = await fetch(logo_url)
    expect(served.status).toBe(200)
    expect(Object.fromEntries(served.headers)).toMatchObject({
      'content-type': 'image/gif',
      'cache-control': 'public, max-age=31536000, immutable',
      'x-content-type-options': 'nosniff',
    })
    expect(Buffer.from(await served.arrayBuffer())).toEqual(GIF)
    expect((await fetch(`${service.portalUrl}/logos/${'0'.repeat(64)}`)).status).toBe(404)
    const { url } = await newSession(service, tenant)
    const [, src] = /<img src="([^"]+)"/.exec((await send(url)).text) ?? []
    expect(new URL(src!, url).href).toBe(logo_url)
    const link = `${service.portalUrl}/pay/${await linkIdOf(tenant)}`
    expect((await send(link)).text).toContain(`<img src="${src}"`)
    // another address, another logo
    await enableCheckout(service, tenant)
    expect(await checkoutOf(tenant)).toMatchObject({ logo_url: null, logo_copied: false })
  })

  test.each<[string, ReceiverAnswer, string]>([
    ['is an SVG', image(Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>')), 'no PNG'],
    ['is too large', image(Buffer.concat([GIF, Buffer.alloc(200_000)])), 'too long'],
    ['is not there', 404, '404'],
    ['is elsewhere', { status: 302, headers: { Location: 'https://127.0.0.1/' } }, '302'],
    ['never comes', 'reset', 'closed'],
  ])('that %s leaves the name', async (_, answer, why) => {
    theirs.answerWith(answer)
    await setLogo()
    expect(await checkoutOf(tenant)).toMatchObject({
      logo_copied: false,
      logo_problem: expect.stringContaining(why),
    })
  })

  test('within a network is not asked for', async () => {
    await setLogo('https://10.1.2.3/logo.png')
    expect((await checkoutOf(tenant)).logo_problem).toMatch(/not public/)
  })

  test('that comes later is copied later', async () => {
    theirs.answerWith(503)
    await setLogo()
    expect(await checkoutOf(tenant)).toMatchObject({ logo_copied: false })
    theirs.answerWith(image(GIF))
    await operate(service, 'POST', '/clock/advance', { seconds: 900 })
    expect(await checkoutOf(tenant)).toMatchObject({ logo_copied: true, logo_problem: null })
  })
})

describe('a web address', () => {
  const fileAt = (path: string, content: string) => (asked: { readonly path: string }) =>
    asked.path === path ? { status: 200, body: `${content}\n` } : 404

  test('is proven by a file, for as long as that is there', async () => {
    const host = theirs.url.slice('https://'.length)
    const tenant = await seller({ web_address: host, link_format: '/checkout/{token}' })
    const before = await checkoutOf(tenant)
    const { file, dns } = before.web_address_challenge
    expect(before).toMatchObject({ config_version: 1, web_address_verified: false })
    expect(file.url).toBe(`https://${host}/.well-known/compstream-verification.txt`)
    expect(dns).toEqual({ type: 'TXT', name: expect.stringMatching(/^_compstream\./), value: file.content })
    theirs.answerWith(404)
    const refused = await verify(tenant)
    expect([refused.status, refused.body.data]).toMatchObject([
      ...[200, { web_address_verified: false, web_address_look: { file: 'The address answered 404' } }],
    ])
    const first = await newSession(service, tenant)
    expect(first).toMatchObject({ host_is_custom: false, config_version: 1 })
    expect(first.url).toBe(`${service.portalUrl}/pay/${tokenOf(first)}`)

    theirs.answerWith(fileAt('/.well-known/compstream-verification.txt', file.content))
    expect((await verify(tenant)).body.data).toMatchObject({
      config_version: 1,
      web_address_verified: true,
      web_address_look: { file: null },
    })
    const session = await newSession(service, tenant)
    expect(session).toMatchObject({ host_is_custom: true, config_version: 1 })
    expect(session.url).toBe(`https://${host}/checkout/${tokenOf(session)}`)

    await operate(service, 'POST', '/clock/advance', { seconds: DAY_S })
    expect(await checkoutOf(tenant)).toMatchObject({ web_address_verified: true })
    theirs.answerWith(fileAt('/.well-known/compstream-verification.txt', 'of somebody else'))
    await operate(service, 'POST', '/clock/advance', { seconds: DAY_S })
    expect(await checkoutOf(tenant)).toMatchObject({ web_address_verified: false, config_version: 1 })
    expect(await newSession(service, tenant)).toMatchObject({ host_is_custom: false })
    theirs.answerWith(fileAt('/.well-known/compstream-verification.txt', file.content))
    await operate(service, 'POST', '/clock/advance', { seconds: DAY_S })
    expect(await checkoutOf(tenant)).toMatchObject({ web_address_verified: true })
  })

  test('counts when the operator vouches for it, until it changes or is looked at', async () => {
    const tenant = await seller({ web_address: 'https://Pay.Vouched.example/' })
    expect((await verify(tenant, { force: true })).body.data).toMatchObject({
      web_address: 'https://Pay.Vouched.example/',
      web_address_verified: true,
      web_address_look: null,
    })
    const session = await newSession(service, tenant)
    expect(session.url).toBe(`https://pay.vouched.example/pay/${tokenOf(session)}`)
    await operate(service, 'POST', '/clock/advance', { seconds: 2 * DAY_S })
    expect(await checkoutOf(tenant)).toMatchObject({ web_address_verified: true })
    // the same address in other words
    await enableCheckout(service, tenant, { web_address: 'pay.vouched.example' })
    expect(await checkoutOf(tenant)).toMatchObject({ web_address_verified: true, config_version: 2 })
    expect((await verify(tenant)).body.data).toMatchObject({ web_address_verified: false })
    await verify(tenant, { force: true })
    await enableCheckout(service, tenant, { web_address: 'checkout.vouched.example' })
    expect(await checkoutOf(tenant)).toMatchObject({ web_address_verified: false, config_version: 3 })
  })

  test('shows the pages of its tenant alone, those of links that are out included', async () => {
    const [tenant, other] = [
      await seller({ web_address: 'pay.own.example', link_format: '/c/{token}/open?x=1' }),
      await seller(),
    ]
    await verify(tenant, { force: true })
    const [own, foreign] = [await linkIdOf(tenant), await linkIdOf(other)]
    const paths = (id: string) => [`/pay/${id}`, `/c/${id}/open?x=1`]
    const all = [own, foreign].flatMap(paths)
    const found = async (host: string) =>
      Promise.all(all.map(async (path) => (await under(host, path)).status))
    expect(await found('pay.own.example')).toEqual([200, 200, 404, 404])
    const sameHosts = [
      'PAY.own.example:443',
      'pay.own.example.',
      'pay.own.example:8443',
      'pay.own.example.:80',
    ]
    for (const host of sameHosts) expect([host, await found(host)]).toEqual([host, [200, 200, 404, 404]])
    const whole = (path: string) => under('pay.own.example', `http://pay.own.example${path}`)
    const byWhole = await Promise.all(all.map(async (path) => (await whole(path)).status))
    expect(byWhole).toEqual([200, 200, 404, 404])
    // as where nothing is known at all
    const nothing = await send(`${service.portalUrl}/pay/${'0'.repeat(24)}`)
    expect((await under('pay.own.example', `/pay/${foreign}`)).text).toBe(nothing.text)
    expect(await found('nobodys.example')).toEqual([200, 404, 200, 404])
    // after the address changed, what was issued there stays
    await enableCheckout(service, tenant, { web_address: 'new.own.example', link_format: '/{token}' })
    expect(await found('pay.own.example')).toEqual([200, 200, 404, 404])
    await verify(tenant, { force: true })
    expect((await under('new.own.example', `/${own}?from=mail`)).status).toBe(200)
    expect((await under('new.own.example', `/${foreign}`)).status).toBe(404)
    expect((await under('pay.own.example', '/nothing')).status).toBe(404)
  })

  test('shows pages of sessions, and takes what is sent from them', async () => {
    const tenant = await seller({ web_address: 'pay.paid.example', link_format: 'embed/{token}' })
    await verify(tenant, { force: true })
    const { id, url } = await newSession(service, tenant)
    const { host, pathname } = new URL(url)
    expect([host, pathname]).toEqual(['pay.paid.example', expect.stringMatching(/^\/embed\/[\w-]{59}$/)])
    const page = await under(host, pathname)
    expect([page.status, page.text]).toEqual([200, expect.stringContaining('$105.00')])
    const proof = /name="proof" value="(\w+)"/.exec(page.text)![1]
    const paid = await under(host, pathname, `proof=${proof}&option=card&card=succeeds`)
    expect([paid.status, paid.location]).toEqual([303, `.${pathname.slice('/embed'.length)}`])
    expect((await under(host, pathname)).text).toContain('<h1>Paid</h1>')
    expect((await under(new URL(service.portalUrl).host, `/pay/${pathname.split('/')[2]}`)).status).toBe(200)
    // the frame of an embedded session, under the same rule
    const embedded = async (one: SeededTenant) =>
      `/embed/${(await newSession(service, one, { mode: 'embedded' })).id}`
    expect((await under(host, await embedded(tenant))).status).toBe(200)
    expect((await under(host, await embedded(await seller()))).status).toBe(404)
    expect((await under(host, `/embed/${id}`)).status).toBe(404)
  })

  test('shows no page of another tenant, however its address is written', async () => {
    const [tenant, other] = [await seller({ web_address: 'pay.written.example' }), await seller()]
    await verify(tenant, { force: true })
    const host = 'pay.written.example'
    const escaped = (text: string) =>
      text.replace(/./g, (one) => `%${one.charCodeAt(0).toString(16).padStart(2, '0')}`)
    const written = ([at, id]: readonly [string, string]) => [
      `/${at}/${escaped(id[0]!)}${id.slice(1)}`,
      `/${at}/${id.slice(0, -1)}${escaped(id.at(-1)!).toUpperCase()}`,
      `/${at}/${escaped(id)}`,
      `/${escaped(at)}/${id}`,
      `http://x/${at}/${escaped(id)}?x=%2e`,
    ]
    const pagesOf = async (one: SeededTenant) => {
      const embedded = await newSession(service, one, { mode: 'embedded' })
      return [
        ...[['embed', embedded.id] as const, ['pay', tokenOf(await newSession(service, one))] as const],
        ['pay', await linkIdOf(one)] as const,
      ]
    }
    const found = async (paths: readonly string[]) =>
      Promise.all(
        [host, `${host}.`, `${host}:8443`].flatMap((name) =>
          paths.map(async (path) => [name, path, (await under(name, path)).status]),
        ),
      )
    const foreign = await pagesOf(other)
    for (const [name, path, status] of await found(foreign.flatMap(written))) {
      expect([name, path, status]).toEqual([name, path, 404])
    }
    for (const [name, path, status] of await found((await pagesOf(tenant)).flatMap(written))) {
      expect([name, path, status]).toEqual([name, path, 200])
    }
    // what is no escape, and what is escaped twice
    const [[, id]] = foreign as [readonly [string, string]]
    const twice = `/embed/%25${escaped(id[0]!).slice(1)}${id.slice(1)}`
    const broken = `/embed/%%33${escaped(id[0]!).slice(2)}${id.slice(1)}`
    const posted = await under(host, written(foreign[0]!)[0]!, 'client_secret=x')
    expect(posted.status).toBe(404)
    expect((await found([twice, broken, '/embed/%', '/%zz'])).map(([, , status]) => status)).toEqual(
      Array(12).fill(404),
    )
  })

  test('has one tenant at a time', async () => {
    const settings = { web_address: 'pay.shared.example' }
    const [first, second] = [await seller(settings), await seller(settings)]
    expect((await verify(first, { force: true })).status).toBe(200)
    expect(await verify(second, { force: true })).toMatchObject({ status: 409 })
    await enableCheckout(service, first)
    expect((await verify(second, { force: true })).body.data.web_address_verified).toBe(true)
    expect((await under('pay.shared.example', `/pay/${await linkIdOf(first)}`)).status).toBe(404)
    expect((await under('pay.shared.example', `/pay/${await linkIdOf(second)}`)).status).toBe(200)
  })

  test('is none while it is not set, or the service’s own', async () => {
    expect(await verify(await seller(), { force: true })).toMatchObject({ status: 409 })
    const own = await seller({ web_address: new URL(service.portalUrl).host })
    expect(await verify(own, { force: true })).toMatchObject({ status: 409 })
    expect(await verify({ tenantId: '0'.repeat(24) })).toMatchObject({ status: 404 })
    expect(await verify(own, { force: 'yes' })).toMatchObject({ status: 400 })
  })
})

// a web address shows pages on a service with its own
describe('a service without pages of its own', { tags: 'long' }, () => {
  let names: NameServer
  let lone: RunningService
  beforeAll(async () => {
    names = await startNameServer()
    lone = await startProcess({ env: { PORTAL_URL: 'off', DNS_SERVERS: names.address } })
  })
  afterAll(async () => {
    await lone?.stop()
    await names?.stop()
  })

  test('has no host of them, and its links lead to their data', async () => {
    expect(lone.portalUrl).toBeUndefined()
    expect((await send(lone.paymentsUrl)).status).toBe(404)
    const { _id, processor_url } = await newLink(lone, await seedTenant(lone))
    expect(processor_url).toBe(`${lone.paymentsUrl}/public/payment-links/${_id}`)
    expect((await send(processor_url)).body.data).toMatchObject({ _id, status: 'payable' })
  })

  test('issues links on addresses that are verified, here by a record', async () => {
    const tenant = await seedTenant(lone)
    await enableCheckout(lone, tenant, { web_address: 'pay.lone.example' })
    const create = () => partner(lone, tenant.clientHeaders, 'POST', '/payment-sessions', sessionBody(tenant))
    const refused = await create()
    expect([refused.status, refused.body.error]).toEqual([503, 'No Payment Page Host'])
    const embedded = { ...sessionBody(tenant), mode: 'embedded' }
    const mounted = await partner(lone, tenant.clientHeaders, 'POST', '/payment-sessions', embedded)
    expect([mounted.status, mounted.body.data.config_version]).toEqual([201, 1])

    const before = await operate(lone, 'GET', `/tenants/${tenant.tenantId}/checkout`)
    const { name, value } = before.web_address_challenge.dns
    expect(name).toBe('_compstream.pay.lone.example')
    const none = await verify(tenant, {}, lone)
    expect(none.body.data.web_address_look.dns).toBe('There is no such TXT record')
    names.records.set(name, ['v=spf1 -all', `${value}0`])
    expect((await verify(tenant, {}, lone)).body.data.web_address_look.dns).toBe(
      'No TXT record has the value',
    )
    names.records.set(name, ['v=spf1 -all', value])
    expect((await verify(tenant, {}, lone)).body.data).toMatchObject({ web_address_verified: true })
    const session = await create()
    expect([session.status, session.body.data.host_is_custom]).toEqual([201, true])
    expect(session.body.data.url).toMatch(/^https:\/\/pay\.lone\.example\/pay\//)
    // nobody is reached: that says nothing of the address for a while
    names.isFailing = true
    await operate(lone, 'POST', '/clock/advance', { seconds: DAY_S })
    expect((await create()).status).toBe(201)
    await operate(lone, 'POST', '/clock/advance', { seconds: 2 * DAY_S })
    expect((await create()).status).toBe(503)
    names.isFailing = false
    await operate(lone, 'POST', '/clock/advance', { seconds: 2 * DAY_S })
    expect((await create()).status).toBe(201)

    names.records.clear()
    await operate(lone, 'POST', '/clock/advance', { seconds: DAY_S })
    expect((await create()).status).toBe(503)
    // ever more rarely
    const before60 = names.asked.length
    await operate(lone, 'POST', '/clock/advance', { seconds: 60 * DAY_S })
    const looks = names.asked.slice(before60).filter((one) => one === name).length
    expect(looks).toBeGreaterThan(3)
    expect(looks).toBeLessThan(9)
  })
})

describe('the origins that may embed a checkout', () => {
  let tenant: SeededTenant
  beforeAll(async () => {
    tenant = await seedTenant(service)
  })
  const put = (embed_origins: unknown) =>
    askOperator(service, 'PUT', `/tenants/${tenant.tenantId}/checkout`, { ...CHECKOUT, embed_origins })

  test('are none unless they are set', async () => {
    expect((await put(undefined)).body.data.embed_origins).toEqual([])
    const origins = ['https://shop.example', 'https://shop.example:8443', 'http://localhost:3000']
    expect((await put(origins)).body.data.embed_origins).toEqual(origins)
    // as browsers say it
    expect((await put(['https://shop.example:443'])).body.data.embed_origins).toEqual([
      'https://shop.example',
    ])
  })

  test.each([
    ['*'],
    ['null'],
    ['http://shop.example'],
    ['https://shop.example/'],
    ['https://0'],
    ['https://1.2.3.4.5'],
    ['https://*.shop.example'],
    ['https://Shop.example'],
    ['https://shop.example:99999'],
    ["https://shop.example; script-src 'unsafe-inline'"],
    ['https://user@shop.example'],
    ['shop.example'],
    [7],
  ])('are not %j', async (origin) => {
    const { status, body } = await put([origin])
    expect([status, body.message]).toEqual([400, expect.stringContaining('embed_origins')])
  })
})
