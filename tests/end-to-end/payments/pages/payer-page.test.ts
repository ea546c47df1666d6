import { beforeAll, describe, expect, test } from 'vitest'
import {
  askUnder,
  hiddenFields,
  postForm,
  sessionsInAllStates,
  submit,
  TYPED,
} from '../../../support/payer-pages.ts'
import { enableCheckout, newSession, sessionBody, tokenOf } from '../../../support/payment-sessions.ts'
import { partner } from '../../../support/payments.ts'
import { untilLimited, untilRefused } from '../../../support/rate-limits.ts'
import { operate, type SeededTenant, seedTenant, send } from '../../../support/seed.ts'
import { type SharedService, sharedService, startService } from '../../../support/service.ts'

/** The hosted pages of sessions, as whoever speaks HTTP finds them. */

let service: SharedService
let tenant: SeededTenant

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service)
  await enableCheckout(service, tenant)
})

const session = (overrides: Record<string, unknown> = {}) => newSession(service, tenant, overrides)
const shown = async (id: string) =>
  (await partner(service, tenant.clientHeaders, 'GET', `/payment-sessions/${id}`)).body.data
const card = (url: string, which: string) => submit(url, 'card', { card: which })
const bank = (url: string, fields: Record<string, string> = {}) =>
  submit(url, 'bank', { ...TYPED, ...fields })
const policyOf = (headers: Headers) =>
  Object.fromEntries(
    headers
      .get('content-security-policy')!
      .split('; ')
      .map((directive) => [directive.split(' ')[0], directive.split(' ').slice(1)]),
  )

describe('the page of a session', () => {
  test('is opened by who looks at it, not by who asks for its headers', async () => {
    const { id, url } = await session()
    expect((await send(url, { method: 'HEAD' })).status).toBe(200)
    expect((await shown(id)).status).toBe('pending')
    const { status, text } = await send(url)
    expect([status, text]).toEqual([200, expect.stringContaining('Harbor Premium Pay')])
    // cards and bank rail of the installation are simulated
    for (const words of ['Test mode', 'no money moves']) expect(text).toContain(words)
    expect((await shown(id)).status).toBe('opened')
  })

  test('is there in every state, says which, and offers what can be done', async () => {
    const pages = await sessionsInAllStates(service, tenant)
    const seen = await Promise.all(
      Object.entries(pages).map(async ([state, url]) => {
        const { status, text } = await send(url)
        const title = /<h1[^>]*>(.*?)<\/h1>/s.exec(text)![1]!.replace(/<[^>]*>/g, '')
        const offers = ['card', 'bank'].filter((one) => text.includes(`name="option" value="${one}"`))
        expect(text).toContain('help@harbor.example')
        return [state, [status, title.replace(/\s+/g, ' '), offers]] as const
      }),
    )
    expect(Object.fromEntries(seen)).toEqual({
      open: [200, 'Pay Harbor Premium Pay $105.00', ['card', 'bank']],
      failed: [200, 'Pay Harbor Premium Pay $105.00', ['card', 'bank']],
      paid: [200, 'Paid', []],
      'paid, may be paid again': [200, 'Paid', ['card']],
      scheduled: [200, 'Payment scheduled', []],
      processing: [200, 'Payment processing', []],
      returned: [200, 'Returned by your bank', []],
      plan: [200, 'Payment plan with Harbor Premium Pay $21.00 due now', ['bank']],
      'plan without down payment': [200, 'Payment plan with Harbor Premium Pay $0.00 due now', ['bank']],
      'plan scheduled': [200, 'Payment plan scheduled', []],
      cancelled: [200, 'Payment request cancelled', []],
      'cancelled, debit goes ahead': [200, 'Payment request cancelled', []],
      replaced: [200, 'Replaced by a newer request', []],
      expired: [200, 'This payment link has expired', []],
    })
    expect((await send(pages.failed!)).text).toContain('The last card payment was declined')
    expect((await send(pages['cancelled, debit goes ahead']!)).text).toContain('A bank payment goes ahead')
  })

  test('names what the amount is made of, and when a plan is paid', async () => {
    const { url } = await session({
      amount_cents: undefined,
      premium_cents: 99_001,
      fee_cents: 1_000,
      total_installments: 3,
      fee_breakdown: [
        { label: 'Filing fee', amount_cents: 600 },
        { label: 'Service fee', amount_cents: 400 },
      ],
      down_payment_percent: 25,
    })
    const { text } = await send(url)
    const cells = (row: string) =>
      [...row.matchAll(/<t[hd][^>]*>(.*?)<\/t[hd]>/gs)].map(([, cell]) => cell!.replace(/<[^>]*>/g, ''))
    const rows = text.split('<tr>').map(cells)
    const [first, ...installments] = rows.filter(([number]) => /^\d$/.test(number ?? ''))
    expect(rows).toEqual(
      expect.arrayContaining([
        ['Premium', '$990.01'],
        ['Filing fee', '$6.00'],
        ['Service fee', '$4.00'],
        ['Total', '$1,000.01'],
        ['Due now', '$250.00'],
        ['In 3 installments', '$750.01'],
      ]),
    )
    expect(first).toEqual(['1', expect.stringMatching(/^[A-Z][a-z]{2} \d{1,2}, \d{4}$/), '$250.00'])
    expect(installments.map(([, , amount]) => amount)).toEqual(['$250.00', '$250.01'])
  })

  test('says nothing of installments to a plan that is paid at once', async () => {
    const to = 'at-once@tidewater.example'
    const { url } = await session({
      total_installments: 3,
      down_payment_percent: 100,
      deliver: { email: true },
      customer: { name: 'Tidewater Joinery LLC', email: to },
    })
    const [mail] = await operate(service, 'GET', `/outbox?to=${encodeURIComponent(to)}`)
    expect(mail.text).toContain('asks you to pay $105.00.')
    const open = await send(url)
    await bank(url)
    const scheduled = await send(url)
    for (const { text } of [open, scheduled]) expect(text).not.toMatch(/installment|\$0\.00/)
    expect(open.text).toContain('due now')
    expect(scheduled.text).toContain('You authorized $105.00 as a down payment from the bank account')
  })

  test('has a policy, tells no address, and is kept by nobody', async () => {
    const { url } = await session()
    const { headers } = await send(url)
    expect(headers.get('referrer-policy')).toBe('no-referrer')
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('x-frame-options')).toBe('DENY')
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('set-cookie')).toBeNull()
    expect(policyOf(headers)).toMatchObject({
      'default-src': ["'none'"],
      'script-src': [expect.stringMatching(/^'sha256-/)],
      'connect-src': ["'self'"],
      'frame-src': ["'none'"],
      'form-action': ["'self'"],
      'frame-ancestors': ["'none'"],
      'base-uri': ["'none'"],
    })
    expect(headers.get('content-security-policy')).not.toContain('unsafe')
  })

  test('may be framed by the origins that the settings name alone', async () => {
    const own = await seedTenant(service)
    await enableCheckout(service, own, { embed_origins: ['https://shop.example', 'http://localhost:8080'] })
    const { url } = await newSession(service, own)
    const { headers } = await send(url)
    expect(policyOf(headers)['frame-ancestors']).toEqual(['https://shop.example', 'http://localhost:8080'])
    expect(headers.get('x-frame-options')).toBeNull()
  })

  test.each([
    [200, 'x', 27],
    [69, 'x', 200],
    [38, '\u{1f600}', 100],
    [66, '"', 35],
    [14, '&', 200],
  ])('stays so with the most that is taken: %i fees of %s, %i times', async (count, letter, times) => {
    const own = await seedTenant(service)
    await enableCheckout(service, own, {
      display_name: '"'.repeat(100),
      support_email: `${'a'.repeat(200)}@harbor.example`,
    })
    const overrides = (fees: number) => ({
      amount_cents: undefined,
      premium_cents: 90_000_000,
      fee_cents: fees * 40_000,
      total_installments: 60,
      description: '"'.repeat(500),
      fee_breakdown: Array(fees).fill({ label: letter.repeat(times), amount_cents: 40_000 }),
    })
    const { url } = await newSession(service, own, overrides(count))
    const wrong = { account_holder_name: '"'.repeat(201), bank_name: '"'.repeat(201), routing_number: '1' }
    const refused = await bank(url, { ...wrong, account_number: '1', account_type: '1', authorized: '' })
    expect(refused.status).toBe(400)
    for (const { text } of [await send(url), refused]) {
      expect(text.match(/<tr>/g)!.length).toBeGreaterThan(60 + count)
      expect(Buffer.byteLength(text)).toBeLessThan(50 * 1024)
    }
    const more = sessionBody(own, overrides(count + 2))
    const { status, body } = await partner(service, own.clientHeaders, 'POST', '/payment-sessions', more)
    expect([status, body.message]).toEqual([400, expect.stringMatching(/^fee_breakdown /)])
  })

  test('shows what partners and payers wrote as text', async () => {
    const evil = `"><script>alert(1)</script><img src=x onerror='alert(2)'>&amp;`
    const own = await seedTenant(service)
    await enableCheckout(service, own, { display_name: evil })
    const { url } = await newSession(service, own, {
      amount_cents: undefined,
      premium_cents: 10_000,
      fee_cents: 500,
      description: evil,
      fee_breakdown: [{ label: evil, amount_cents: 500 }],
    })
    const refused = await bank(url, { account_holder_name: evil, bank_name: evil, routing_number: evil })
    for (const text of [(await send(url)).text, refused.text]) {
      expect(text).not.toContain(evil)
      expect(text).not.toMatch(/<script>alert|<img src=x/)
      expect(text).toContain('&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;')
    }
  })
})

describe('what opens no page', () => {
  test('is answered all in the same way', async () => {
    const { url } = await session()
    const token = tokenOf({ url })
    const near = `${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`
    const unknown = Buffer.from('0'.repeat(88), 'hex').toString('base64url').padEnd(59, 'A')
    const guesses = [
      'x',
      near,
      unknown,
      '0'.repeat(24),
      `${token}A`,
      token.toUpperCase(),
      '%00',
      `${token}%0a`,
    ]
    const answers = await Promise.all(guesses.map((guess) => send(`${service.portalUrl}/pay/${guess}`)))
    const [first, ...others] = answers
    expect(first!.status).toBe(404)
    expect(first!.text).toContain('<h1>Not found</h1>')
    for (const other of others) expect([other.status, other.text]).toEqual([404, first!.text])
    expect(first!.text).not.toContain('Harbor')
    const post = await postForm(`${service.portalUrl}/pay/${near}`, { option: 'bank', ...TYPED })
    expect([post.status, post.text]).toEqual([404, first!.text])
  })

  // rate-limits limits an address that presents no valid key, and nobody who has one
  test('cannot be guessed for long from one address, whose payers pay all the same', {
    tags: 'long',
  }, async () => {
    const strict = await startService({ env: { RATE_LIMIT_RPS: '2' } })
    try {
      const own = await seedTenant(strict)
      await enableCheckout(strict, own, { web_address: 'pay.guessed.example' })
      const { url } = await newSession(strict, own)
      const token = tokenOf({ url })
      const guess = (n: number) => `${token.slice(0, 40)}${String(n).padStart(19, '0')}`
      const answers = await untilRefused((n) => send(`${strict.portalUrl}/pay/${guess(n)}`))
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([404, 429]))
      await untilRefused((n) => postForm(`${strict.portalUrl}/pay/${guess(n)}`, TYPED))
      // as a payer has it whose proxy others guess through
      const valid = `/public/payment-sessions/${token}`
      const fromPayer = (address: string) => Promise.all(Array.from({ length: 4 }, () => send(address)))
      const [pages, guesses, sessions] = await Promise.all([
        fromPayer(url),
        untilRefused((n) => send(`${strict.paymentsUrl}${valid.slice(0, -9)}${n + 1e8}`)),
        fromPayer(`${strict.paymentsUrl}${valid}`),
      ])
      expect([...pages, ...sessions].map(({ status }) => status)).toEqual(Array(8).fill(200))
      expect(new Set(guesses.map(({ status }) => status))).toEqual(new Set([404, 429]))
      const other = await newSession(strict, own)
      await untilLimited(2, () => send(other.url))

      // who asks for the frame of a session, whose id is no secret, takes nothing from who has its secret
      const framed = await newSession(strict, own, { mode: 'embedded' })
      const frame = `${strict.portalUrl}/embed/${framed.id}`
      await untilLimited(2, () => send(frame))
      const { client_secret } = framed
      const opened = await Promise.all(Array.from({ length: 4 }, () => postForm(frame, { client_secret })))
      expect(opened.map(({ status }) => status)).toEqual(Array(4).fill(200))

      await operate(strict, 'POST', `/tenants/${own.tenantId}/checkout/verify-web-address`, { force: true })
      await untilRefused((n) => askUnder(strict.portalUrl, 'pay.guessed.example', `/pay/${guess(n)}`))
      const output = strict.output.join('\n')
      expect(output).not.toContain(token.slice(0, 30))
      expect(output).not.toContain('MaxListenersExceededWarning')
    } finally {
      await strict.stop()
    }
  })
})

describe('a form that is sent', () => {
  test('from elsewhere is refused, and does nothing', async () => {
    const { id, url } = await session()
    const proof = hiddenFields((await send(url)).text, 'bank')
    expect(Object.keys(proof).sort()).toEqual(['option', 'proof'])
    const fields = { ...TYPED, ...proof }
    const foreign: Record<string, string>[] = [
      { Origin: 'https://evil.example' },
      { Origin: `${service.portalUrl}.evil.example` },
      { Origin: service.paymentsUrl },
      { 'Sec-Fetch-Site': 'cross-site' },
      { 'Sec-Fetch-Site': 'same-site', Origin: service.portalUrl },
    ]
    for (const headers of foreign) {
      expect([headers, (await postForm(url, fields, headers)).status]).toEqual([headers, 403])
    }
    for (const wrong of ['', 'x', proof.proof!.replace(/^./, (first) => (first === '0' ? '1' : '0'))]) {
      expect((await postForm(url, { ...fields, proof: wrong }, { Origin: 'null' })).status).toBe(403)
    }
    const other = hiddenFields((await send((await session()).url)).text, 'bank')
    expect((await postForm(url, { ...fields, ...other })).status).toBe(403)
    for (const type of ['application/json', 'text/plain', 'multipart/form-data; boundary=x']) {
      expect((await postForm(url, fields, { 'Content-Type': type })).status).toBe(415)
    }
    const large = await postForm(url, { ...fields, bank_name: 'x'.repeat(20_000) })
    expect([large.status, large.text]).toEqual([413, expect.stringContaining('larger than 16 KiB')])
    const packed = await postForm(url, fields, { 'Content-Encoding': 'gzip' })
    expect([packed.status, packed.text]).toEqual([415, expect.not.stringContaining('JSON')])
    expect((await postForm(url, { ...fields, option: 'gold' })).status).toBe(400)
    expect((await shown(id)).status).toBe('opened')
    expect((await postForm(url, fields, { Origin: 'null', 'Sec-Fetch-Site': 'same-origin' })).status).toBe(
      303,
    )
    expect((await shown(id)).status).toBe('scheduled')
  })

  test('arranges a bank debit, and leads back to the page', async () => {
    const { id, url } = await session()
    const typed = { routing_number: '0210-00021', account_number: ' 0001 2345 6789 ' }
    const answer = await bank(url, typed)
    expect([answer.status, new URL(answer.headers.get('location')!, url).href]).toEqual([303, url])
    expect((await shown(id)).status).toBe('scheduled')
    const { text } = await send(url)
    expect(text).toContain('ending in 6789')
    expect(text).not.toMatch(/23456789|021000021|Tidewater/)
    // sent again by a second press, or from a tab that was left open
    const again = await postForm(url, {
      ...hiddenFields((await send((await session()).url)).text, 'bank'),
      ...TYPED,
    })
    expect(again.status).toBe(403)
  })

  test.each([
    ['account_holder_name', ['', '   ', 'x'.repeat(201)]],
    ['routing_number', ['', '021000022', '12345678', '0210000211', 'abcdefghi']],
    ['account_number', ['', '1234', '123456789012345678', '12a45']],
    ['account_type', ['', 'gold']],
    ['authorized', ['', 'false', 'on']],
  ])('with a wrong %s says so, and keeps the rest', async (field, wrong) => {
    const { id, url } = await session()
    for (const value of wrong) {
      const { status, text } = await bank(url, { [field]: value })
      expect([value, status]).toEqual([value, 400])
      expect(text).toContain(`<a href="#${field}">`)
      if (field !== 'account_type') expect(text).toMatch(new RegExp(`id="${field}"[^>]*aria-invalid="true"`))
      if (field !== 'account_holder_name') expect(text).toContain('value="Tidewater Joinery LLC"')
      // the number of an account is not sent back
      expect(text).not.toContain(TYPED.account_number)
    }
    expect((await shown(id)).status).toBe('opened')
  })

  test('by a test card succeeds, is declined, or gets no answer', async () => {
    const { id, url } = await session()
    const late = await card(url, 'times_out')
    expect([late.status, late.text]).toEqual([502, expect.stringContaining('did not answer')])
    expect((await shown(id)).status).toBe('opened')
    expect((await card(url, 'declines')).status).toBe(303)
    expect((await send(url)).text).toContain('The last card payment was declined')
    expect((await shown(id)).status).toBe('opened')
    expect((await card(url, 'gold')).status).toBe(400)
    const before = hiddenFields((await send(url)).text, 'card')
    expect((await card(url, 'succeeds')).status).toBe(303)
    expect((await shown(id)).status).toBe('paid')
    // the same from a page that was left open shows what has happened meanwhile
    for (const fields of [
      { ...before, card: 'succeeds' },
      { ...before, ...TYPED, option: 'bank' },
    ]) {
      expect((await postForm(url, fields)).status).toBe(303)
    }
    expect((await send(url)).text).toContain('<h1>Paid</h1>')
    expect((await shown(id)).status).toBe('paid')
  })

  test('for a plan takes no card', async () => {
    const { id, url } = await session({ total_installments: 3 })
    const proof = hiddenFields((await send(url)).text, 'bank')
    for (const option of ['card', 'checkout']) {
      const { status } = await postForm(url, { ...proof, option, card: 'succeeds' })
      expect([option, status]).toEqual([option, option === 'card' ? 303 : 409])
    }
    expect((await shown(id)).status).toBe('opened')
  })

  test('for a checkout is answered with what mounts it', async () => {
    const { url } = await session()
    const proof = hiddenFields((await send(url)).text, 'card')
    const { status, text } = await postForm(url, { ...proof, option: 'checkout' })
    expect([status, JSON.parse(text)]).toEqual([
      200,
      { client_secret: expect.any(String), publishable_key: expect.any(String) },
    ])
  })
})

test('no token stands in what the service writes', async () => {
  const { url } = await session()
  const token = tokenOf({ url })
  await send(url)
  await bank(url)
  await postForm(url, TYPED)
  await send(`${url}/nothing`)
  const metrics = await send(`${service.opsUrl}/metrics`)
  expect(metrics.text).toContain('route="/pay/:id"')
  expect(metrics.text).not.toContain(token)
  expect((await service.output()).join('\n')).not.toContain(token)
})
