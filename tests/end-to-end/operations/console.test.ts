// @module-tag once
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { OPERATOR_ROLES, type OperatorRole } from '../../../domain/access/operators.ts'
import { doingsOf } from '../../../interfaces/operator-api/console/action-pages.ts'
import { OperatorEndpoints, paramsOf } from '../../../interfaces/operator-api/console/calls.ts'
import { resources } from '../../../interfaces/operator-api/console/resources.ts'
import { operatorEndpoints } from '../../../interfaces/operator-api/endpoints.ts'
import { rolesOf } from '../../../interfaces/operator-api/host/roles.ts'
import { ConsoleVisitor, formOf, proofIn } from '../../support/console.ts'
import { newPartner, registerWebhook } from '../../support/partners.ts'
import { askOperator, operate, type SeededTenant, seedTenant } from '../../support/seed.ts'
import { type SharedService, sharedService } from '../../support/service.ts'
import { type Receiver, startReceiver } from '../../support/webhook-receiver.ts'

let service: SharedService
let tenant: SeededTenant
let visitor: ConsoleVisitor

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service)
  visitor = new ConsoleVisitor(service)
  await visitor.signIn()
})

const PLACES = [
  ...['', '/alerts', '/projections', '/projections/employers', '/dead-letters', '/work', '/debits'],
  ...['/debits?status=quarantined', '/bank-files', '/bank-reports', '/reconciliations', '/webhooks'],
  ...['/events', '/events?type=OperatorActed', '/streams', '/audit', '/proofs', '/sign-in'],
  ...['/actions/rebuildProjection?name=employers', '/actions/verifyLog', '/actions/reconcile'],
].map((path) => `/console${path}`)

/** Elements that stand open where they should be closed, or the other way round. */
function unbalanced(text: string): readonly string[] {
  const open: string[] = []
  const wrong: string[] = []
  for (const [, end, name, rest] of text
    .replaceAll(/<style>.*?<\/style>/gs, '')
    .matchAll(/<(\/?)([a-z]\w*)([^>]*)>/g)) {
    if (['meta', 'link', 'input', 'path', 'rect', 'circle'].includes(name!) || rest!.endsWith('/')) continue
    if (end === '') open.push(name!)
    else if (open.pop() !== name) wrong.push(name!)
  }
  return [...wrong, ...open]
}

/** Why requests to the console were refused so far, as the log of the service tells it. */
async function refusals(): Promise<string[]> {
  const lines = (await service.output()).filter((line) => line.includes('operator log-in refused'))
  return lines.map((line) => JSON.parse(line).reason)
}

describe('signing in at the console', () => {
  test('takes an operator token, and gives a cookie that no script and no other site gets', async () => {
    const own = new ConsoleVisitor(service)
    expect(await own.signIn()).toMatch(
      /^compstream_console=[\w-]{43}; Path=\/console; HttpOnly; SameSite=Strict$/,
    )
    expect(own.cookie).not.toContain(service.operatorToken)
    expect((await own.get('/console')).text).toContain('<h1>Overview</h1>')
    const { host } = new URL(service.opsUrl)
    const behindTls = await own.ask(
      'POST',
      '/console/sign-in',
      { token: service.operatorToken },
      { Origin: `https://${host}` },
    )
    expect(behindTls.headers.get('set-cookie')).toMatch(/; Secure$/)
  })

  test('refuses every other token, and says so in the log', async () => {
    const answer = await new ConsoleVisitor(service).ask('POST', '/console/sign-in', {
      token: 'x'.repeat(40),
    })
    expect([answer.status, answer.headers.get('set-cookie')]).toEqual([401, null])
    expect(answer.text).toContain('The token is not that of an operator.')
    await expect.poll(refusals).toContain('wrong token')
  })

  test('comes before every page, and leads back to it, never to another host', async () => {
    for (const path of PLACES.filter((one) => one !== '/console/sign-in')) {
      const { status, headers } = await new ConsoleVisitor(service).get(path)
      const next = new URL(headers.get('location')!, service.opsUrl)
      expect([path, status, next.pathname, next.searchParams.get('next')]).toEqual([
        path,
        303,
        '/console/sign-in',
        path,
      ])
    }
    const form = { token: service.operatorToken, next: 'https://evil.example/console' }
    const { headers } = await new ConsoleVisitor(service).ask('POST', '/console/sign-in', form)
    expect(headers.get('location')).toBe('/console')
  })
})

describe('a session of the console', () => {
  test('ends with the sign-out, also for a copy of its cookie', async () => {
    const own = new ConsoleVisitor(service)
    await own.signIn()
    const form = proofIn(await own.get('/console'), '/console/sign-out')
    expect((await own.ask('POST', '/console/sign-out', { form })).headers.get('set-cookie')).toContain(
      'Max-Age=0',
    )
    expect((await own.get('/console')).status).toBe(303)
    await expect.poll(refusals).toContain('session that has ended')
  })

  test('ends after 30 minutes without a request, and after 12 hours in any case', async () => {
    const [idle, busy] = [new ConsoleVisitor(service), new ConsoleVisitor(service)]
    await Promise.all([idle.signIn(), busy.signIn()])
    const wait = (minutes: number) => operate(service, 'POST', '/clock/advance', { seconds: minutes * 60 })
    for (let passed = 0; passed < 12 * 60 - 29; passed += 29) {
      await wait(29)
      expect((await busy.get('/console/alerts')).status).toBe(200)
    }
    expect((await idle.get('/console/alerts')).status).toBe(303)
    await wait(29)
    expect((await busy.get('/console/alerts')).status).toBe(303)
    await visitor.signIn()
  })
})

describe('every page of the console', () => {
  test('is below 100 KiB, closes what it opens, has one heading, runs nothing and loads nothing', async () => {
    const stream = `/console/streams/policy-${tenant.policyId}`
    const [event] = await operate(service, 'GET', `/streams/policy-${tenant.policyId}`)
    for (const path of [
      ...PLACES,
      stream,
      `${stream}?revision=0`,
      `/console/stories/policy/${tenant.policyId}`,
      `/console/stories/policy/${tenant.policyId}?position=${event.position}`,
      `/console/proofs/${event.event_id}`,
      '/console/nothing',
    ]) {
      const { status, headers, text } = await visitor.get(path)
      if (path === '/console/sign-in') {
        // who is signed in is led on
        expect([status, headers.get('location')]).toEqual([303, '/console'])
        continue
      }
      expect([path, status]).toEqual([path, path === '/console/nothing' ? 404 : 200])
      expect([path, unbalanced(text)]).toEqual([path, []])
      expect(Buffer.byteLength(text)).toBeLessThan(100 * 1024)
      expect([path, text.match(/<h1[ >]/g)?.length]).toEqual([path, 1])
      expect(text).not.toMatch(/<script|<img|style="|\son\w+=|https?:\/\/(?!www\.w3)/)
      const ids = [...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)
      expect([path, ids]).toEqual([path, [...new Set(ids)]])
      expect(headers.get('content-security-policy')).toMatch(
        /^default-src 'none'; style-src 'sha256-[^']+'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'$/,
      )
      expect(headers.get('cache-control')).toBe('no-store')
    }
  })

  test('draws throughput and lag of the last hour and day, and has the same as a table', async () => {
    const measured = async () =>
      (await operate(service, 'GET', '/throughput')).filter(
        ({ seconds_behind }: { seconds_behind: number | null }) => seconds_behind !== null,
      )
    await expect.poll(async () => (await measured()).length).toBeGreaterThan(0)
    expect(await operate(service, 'GET', '/throughput?span=day')).toHaveLength(72)
    expect((await askOperator(service, 'GET', '/throughput?span=year')).body.field).toBe('span')
    const { text } = await visitor.get('/console')
    for (const span of ['hour', 'day']) {
      expect(text).toMatch(new RegExp(`<title id="[^"]+">Throughput of the last ${span}</title><desc`))
      expect(text).toMatch(new RegExp(`<title id="[^"]+">Lag of the last ${span}</title><desc`))
      expect(text).toContain(`<caption class="hide">The last ${span}</caption>`)
    }
    expect(text).toMatch(/Lag of the last hour <span class="soft">At most \d/)
  })

  test('shows the state of a stream as of a time, and says when there was none', async () => {
    const stream = `/console/streams/policy-${tenant.policyId}`
    expect((await visitor.get(`${stream}?as_of=2999-01-01T00:00`)).text).toContain(tenant.policyNumber)
    const { status, text } = await visitor.get(`${stream}?as_of=2001-01-01T00:00:00`)
    expect([status, text.includes('it was empty at that point')]).toEqual([200, true])
    expect(text).not.toContain('<script')
  })
})

describe('the story of a thing', () => {
  /** Where a link of a page leads, by its words. */
  const linkTo = (text: string, words: string) =>
    new RegExp(`<a href="([^"]+)">${words}</a>`).exec(text)?.[1]?.replaceAll('&amp;', '&')
  const names = ['First Bakery LLC', 'Second Bakery LLC', 'Third Bakery LLC']
  let story: string
  beforeAll(async () => {
    const { employerId } = await seedTenant(service)
    story = `/console/stories/employer/${employerId}`
    for (const legal_name of names)
      await operate(service, 'PATCH', `/employers/${employerId}`, { legal_name })
  })

  test('is shown as of each of its events, one step at a time, with what has changed since', async () => {
    const now = await visitor.get(story)
    expect(now.text).toContain('How it stands')
    expect(now.text).not.toContain('What has changed since')
    const before = await visitor.get(linkTo(now.text, 'Previous event')!)
    expect(before.text).toContain('How it stood then')
    expect(before.text).toContain('What has changed since')
    expect(before.text).toMatch(/<td>[^<]*legal_name/)
    const { headers } = await visitor.get(linkTo(before.text, 'Next event')!)
    expect(headers.get('content-type')).toContain('text/html')
    const after = await visitor.get(linkTo(before.text, 'Next event')!)
    expect(linkTo(after.text, 'Next event')).toBeUndefined()
    expect(after.text).not.toMatch(/<td>[^<]*legal_name/)
    expect(linkTo(after.text, 'Now')).toBe(`${story}?`)
  })

  test('goes by its slider to an event, and by a time to what was known then', async () => {
    const { text } = await visitor.get(story)
    const [, count] = /type="range" name="event" min="1" max="(\d+)"/.exec(text)!
    const { status, headers } = await visitor.get(`${story}?event=1`)
    expect([status, headers.get('location')]).toEqual([303, expect.stringMatching(/\?position=\d+$/)])
    const first = await visitor.get(headers.get('location')!)
    expect(first.text).toContain(`After event 1 of ${count}`)
    expect(first.text).toContain(`type="range" name="event" min="1" max="${count}" step="1" value="1"`)
    const future = await visitor.get(`${story}?as_of=2999-01-01T00:00`)
    expect(future.text).toContain(`After event ${count} of ${count}`)
    const [, position] = /position=(\d+)/.exec(headers.get('location')!)!
    for (const [before, begins] of [
      ['as_of=2001-01-01T00:00', `position=${position}`],
      ['position=0', `position=${position}`],
      [`position=0&from=${position}`, 'event=1'],
    ]) {
      const never = await visitor.get(`${story}?${before}`)
      expect([never.status, never.text.includes('Nothing had happened to it by then.')]).toEqual([200, true])
      expect(never.text).not.toMatch(/cannot be shown|After event/)
      expect(linkTo(never.text, 'Go to its first event')).toBe(`${story}?${begins}`)
    }
    expect((await visitor.get('/console/stories/employer/none')).status).toBe(404)
    expect((await visitor.get(`${story}?position=x`)).text).toContain('The page cannot be shown')
  })

  test('of more than 50 events goes by its slider to each of them, and shows and draws those around it', async () => {
    const { employerId } = await seedTenant(service)
    const long = `/console/stories/employer/${employerId}`
    for (let n = 0; n < 60; n += 1) {
      await operate(service, 'PATCH', `/employers/${employerId}`, {
        legal_name: `${'"Bakery" & Sons '.repeat(9)}${n}`,
      })
    }
    const now = await visitor.get(long)
    const count = Number(/type="range" name="event" min="1" max="(\d+)"/.exec(now.text)![1])
    expect(count).toBeGreaterThanOrEqual(61)
    expect(now.text).toContain(`1 to 50 of ${count}.`)
    const there = await visitor.get((await visitor.get(`${long}?event=58`)).headers.get('location')!)
    expect(there.text).toContain(`After event 58 of ${count}`)
    expect(there.text).toContain(`51 to ${count} of ${count}.`)
    expect(there.text).toContain(`step="1" value="58"`)
    const earlier = await visitor.get(`${long}${linkTo(there.text, 'Earlier events')!.slice(long.length)}`)
    expect(earlier.text).toContain(`After event 58 of ${count}`)
    expect(earlier.text).toContain(`1 to 50 of ${count}.`)
    for (const { text } of [now, there, earlier, await visitor.get(`${long}?page=-7`)]) {
      expect(unbalanced(text)).toEqual([])
      expect(Buffer.byteLength(text)).toBeLessThan(100 * 1024)
    }
    expect(now.text).toMatch(
      /<title id="causes-title">What caused what<\/title><desc id="causes-said">50 events: /,
    )
    expect(now.text.match(/<circle /g)).toHaveLength(50)
    expect(there.text.match(/<circle class="later"/g)).toHaveLength(count - 58)
    expect(there.text).toContain(
      'Drawn are the events above, 50 at the most; what other events caused is not.',
    )
  })
})

describe('an action of the console', () => {
  const rebuild = '/console/actions/rebuildProjection?name=employers'

  test('says what follows from it, is done once, by the endpoint of the API, and leads on', async () => {
    const asked = await visitor.get(rebuild)
    expect(asked.text).toContain('Build a read model anew beside the live one')
    const form = { form: proofIn(asked, rebuild), switch: 'manual' }
    const done = await visitor.ask('POST', rebuild, form)
    expect([done.status, done.text.includes('Done: Rebuild')]).toEqual([200, true])
    const { rebuild: running } = await operate(service, 'GET', '/projections/employers')
    expect(running).toMatchObject({ switch: 'manual' })
    const again = await visitor.ask('POST', rebuild, form)
    expect([again.status, again.text.includes('sent already')]).toEqual([403, true])
    const cancel = '/console/actions/cancelProjectionRebuild?name=employers'
    const cancelled = await visitor.ask('POST', cancel, { form: proofIn(await visitor.get(cancel), cancel) })
    expect(cancelled.status).toBe(200)
    expect((await operate(service, 'GET', '/projections/employers')).rebuild).toBeNull()
  })

  test('that the endpoint refuses is not done, and the page says why', async () => {
    const cancel = '/console/actions/cancelProjectionRebuild?name=employers'
    const { status, text } = await visitor.ask('POST', cancel, {
      form: proofIn(await visitor.get(cancel), cancel),
    })
    expect([status, text.includes('The action was not done')]).toEqual([409, true])
  })

  test('is asked for a reason wherever its endpoint takes one', async () => {
    const path = `/console/actions/releaseDebit?transaction_id=${'0'.repeat(24)}`
    const asked = await visitor.get(path)
    expect(asked.text).toMatch(/<textarea[^>]*name="note"[^>]*required/)
    const without = await visitor.ask('POST', path, { form: proofIn(asked, path), note: ' ' })
    expect([without.status, without.text.includes('note is required')]).toEqual([400, true])
    const { status, text } = await visitor.ask('POST', path, {
      form: proofIn(without, path),
      note: 'Looked at',
    })
    expect([status, text.includes('There is no such bank debit')]).toEqual([404, true])
  })

  test('is refused from another site, with a form of another action or session, and without one', async () => {
    const asked = await visitor.get(rebuild)
    const own = proofIn(asked, rebuild)
    const { host, port } = new URL(service.opsUrl)
    const sites: readonly Record<string, string>[] = [
      { Origin: 'https://evil.example' },
      { Origin: 'null' },
      { Origin: `http://127.0.0.1:${Number(port) + 1}` },
      { 'Sec-Fetch-Site': 'cross-site' },
      { 'Sec-Fetch-Site': 'same-site', Origin: `http://${host}` },
    ]
    const before = await refusals()
    for (const headers of sites) {
      const { status } = await visitor.ask('POST', rebuild, { form: own }, headers)
      expect([headers, status]).toEqual([headers, 403])
    }
    const other = new ConsoleVisitor(service)
    await other.signIn()
    const forms = [
      '',
      'x.y',
      `${own}x`,
      `${own.split('.')[0]}.é`,
      proofIn(await other.get(rebuild), rebuild),
      proofIn(asked, '/console/sign-out'),
    ]
    for (const form of forms) {
      const { status } = await visitor.ask('POST', rebuild, { form })
      expect([form, status]).toEqual([form, 403])
    }
    expect((await operate(service, 'GET', '/projections/employers')).rebuild).toBeNull()
    const told = async () => (await refusals()).slice(before.length).sort()
    await expect
      .poll(told)
      .toEqual([
        ...Array(forms.length).fill('form token'),
        ...Array(sites.length).fill('request of another site'),
      ])
  })

  test('that the console does not offer is not there', async () => {
    expect((await visitor.get('/console/actions/registerTenant')).status).toBe(404)
    expect((await visitor.get(`/console/actions/erase?subject=person/${'0'.repeat(24)}`)).status).toBe(404)
  })
})

describe('an operator of a role', () => {
  const doings = [...doingsOf(new OperatorEndpoints(operatorEndpoints), resources)]
  const people = {} as Record<OperatorRole, { visitor: ConsoleVisitor; operator_id: string }>
  beforeAll(async () => {
    for (const role of OPERATOR_ROLES) {
      const { operator_id, token } = await operate(service, 'POST', '/operators', { name: role, role })
      people[role] = { visitor: new ConsoleVisitor(service), operator_id }
      await people[role].visitor.signIn(token)
    }
  })
  /** Names of the actions that pages lead to. */
  const offered = (texts: readonly string[]) =>
    new Set(
      texts.flatMap((text) => [...text.matchAll(/"\/console\/actions\/(\w+)/g)].map(([, name]) => name!)),
    )

  test('is offered the actions that the endpoints are for by their declarations, and no page of another', async () => {
    const seen = {} as Record<OperatorRole, ReadonlySet<string>>
    for (const role of OPERATOR_ROLES) {
      const paths = PLACES.filter((path) => !path.includes('/actions/') && !path.endsWith('sign-in'))
      const answers = await Promise.all(
        [...paths, '/console/operators'].map((path) => people[role].visitor.get(path)),
      )
      seen[role] = offered(answers.map(({ text }) => text))
      const proofs = answers.some(({ text }) => text.includes('href="/console/proofs/'))
      expect([role, proofs]).toEqual([role, role !== 'support'])
    }
    // an admin may all, so that what pages lead to is known
    expect([...seen.admin]).toEqual(
      expect.arrayContaining(['rebuildProjection', 'createOperator', 'verifyLog']),
    )
    for (const role of OPERATOR_ROLES) {
      const allowed = doings.filter(([, { endpoint }]) => rolesOf(endpoint).includes(role))
      const names = allowed.map(([name]) => name).filter((name) => seen.admin.has(name))
      expect([role, [...seen[role]].sort()]).toEqual([role, names.sort()])
    }
  })

  test('is refused every other action by the endpoint itself, also with the form of one, and it is recorded', async () => {
    for (const role of OPERATOR_ROLES) {
      const own = people[role].visitor
      const before = (await refusals()).filter((why) => why === 'role').length
      const others = doings.filter(([, { endpoint }]) => !rolesOf(endpoint).includes(role))
      for (const [name, { endpoint }] of others) {
        const names = Object.keys(paramsOf(endpoint, []))
        const query = names.map((one) => `${one}=${'0'.repeat(24)}`).join('&')
        const path = `/console/actions/${name}${query && `?${query}`}`
        expect([role, name, (await own.get(path)).status]).toEqual([role, name, 403])
        const form = { form: formOf(own.cookie, path), reason: 'Try', note: 'Try' }
        const posted = await own.ask('POST', path, form)
        const isOfRole = posted.text.includes(`The role ${role} does not open this`)
        expect([role, name, posted.status, isOfRole]).toEqual([role, name, 403, true])
      }
      const recorded = async () => (await refusals()).filter((why) => why === 'role').length
      await expect.poll(recorded).toBe(before + 2 * others.length)
    }
  })

  test('whose access was just taken away does nothing more with the page that still stands open', async () => {
    const { visitor: own, operator_id } = people.operator
    const path = '/console/actions/pauseProjection?name=employers'
    const form = proofIn(await own.get(path), path)
    await operate(service, 'POST', `/operators/${operator_id}/revoke`, { reason: 'Left' })
    const before = (await refusals()).length
    const { status, headers } = await own.ask('POST', path, { form })
    expect([status, headers.get('location')]).toEqual([303, '/console/sign-in?next=%2Fconsole'])
    expect((await operate(service, 'GET', '/projections/employers')).state).not.toBe('paused')
    await expect.poll(async () => (await refusals()).slice(before)).toEqual(['session that has ended'])
  })
})

describe('the search box', () => {
  test('sends what was typed in a form, never in an address', async () => {
    const form = proofIn(await visitor.get('/console'), '/console/search')
    for (const q of ['12-3456789', '%', '<script>alert(1)</script>', 'x'.repeat(10_000)]) {
      const { status, text } = await visitor.ask('POST', '/console/search', { form, q })
      expect([200, 400]).toContain(status)
      expect(text).not.toContain('<script>')
    }
    expect((await visitor.ask('POST', '/console/search', { q: 'x' })).status).toBe(403)
  })
})

describe('a webhook whose receiver was away', () => {
  let receiver: Receiver
  let sandbox: SeededTenant
  beforeAll(async () => {
    receiver = await startReceiver()
    sandbox = await seedTenant(service, { environment: 'sandbox' })
  })
  afterAll(() => receiver?.stop())

  test('is among the failing ones of all tenants, and is sent its events again for a reason that is kept', async () => {
    receiver.answerWith(500)
    const partner = await newPartner(service, sandbox.tenantId, { environment: 'sandbox' })
    const { id } = await registerWebhook(partner, `${receiver.url}/console`)
    const { body } = await partner.call('POST', '/payment-links', {
      ...{ employer_id: sandbox.employerId, carrier_id: sandbox.carrierId, policy_id: sandbox.policyId },
      ...{ premium_cents: 120_000, payment_type: 'ONE_TIME', payment_context: 'down_payment' },
      customer: { name: 'Ada Moss', email: 'ada@bakery.example' },
    })
    await partner.call('POST', `/payment-links/${body.data._id}/simulate-completion`, {})
    await operate(service, 'POST', '/drain')
    await operate(service, 'POST', '/clock/advance', { seconds: 3600 })
    await operate(service, 'POST', '/drain')
    await visitor.signIn()
    expect((await visitor.get('/console/webhooks')).text).toContain(id)
    const place = `/console/webhooks/${sandbox.tenantId}/${id}`
    const shown = await visitor.get(place)
    expect(shown.text).not.toContain('bakery.example')
    const [, link] = /href="(\/console\/actions\/resendTenantWebhookEvents\?[^"]*event_id=[^"]+)"/.exec(
      shown.text,
    )!
    const action = link!.replaceAll('&amp;', '&')
    const event = new URL(action, service.opsUrl).searchParams.get('event_id')
    receiver.answerWith(200)
    const before = receiver.requests.length
    const asked = await visitor.get(action)
    expect((await visitor.ask('POST', action, { form: proofIn(asked, action) })).status).toBe(400)
    const form = { form: proofIn(asked, action), reason: 'Receiver is back' }
    expect((await visitor.ask('POST', action, form)).status).toBe(403)
    const again = proofIn(await visitor.get(action), action)
    expect((await visitor.ask('POST', action, { ...form, form: again })).status).toBe(200)
    await operate(service, 'POST', '/drain')
    expect(receiver.requests.slice(before).map(({ headers }) => headers['x-webhook-id'])).toContain(event)
    const recorded = await operate(service, 'GET', '/events?type=OperatorActed&limit=1000')
    expect(recorded.at(-1).data).toMatchObject({
      action: 'resend-webhooks',
      target: id,
      details: { event_id: event, reason: 'Receiver is back' },
    })
    const unknown = `/tenants/${sandbox.tenantId}/webhooks/${'0'.repeat(24)}`
    expect((await askOperator(service, 'GET', `${unknown}/deliveries`)).status).toBe(404)
    expect((await askOperator(service, 'POST', `${unknown}/resend`, { event_id: event })).status).toBe(404)
    const known = `/tenants/${sandbox.tenantId}/webhooks/${id}`
    const half = await askOperator(service, 'POST', `${known}/resend`, { from: '2026-01-01T00:00:00Z' })
    expect([half.status, half.body.field]).toEqual([400, 'event_id'])
  })
})
