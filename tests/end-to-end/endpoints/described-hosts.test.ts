import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Validator } from '@seriousme/openapi-schema-validator'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventDescription } from '../../../interfaces/descriptions.ts'
import { ERROR_CODES } from '../../../interfaces/endpoints/error-codes.ts'
import { browserPath } from '../../support/browser.ts'
import type { DescribedApi } from '../../support/described-hosts.ts'
import { descriptionOf } from '../../support/descriptions.ts'
import { send } from '../../support/seed.ts'
import { type RunningService, startService } from '../../support/service.ts'

/** What a host says of itself to anybody: its description, and the page that shows it. */

let service: RunningService
beforeAll(async () => {
  service = await startService({ env: { RATE_LIMIT_RPS: '100', CORE_URL: 'https://api.example.com' } })
})
afterAll(() => service?.stop())

const READ_HERE = { url: '/', description: 'Where this was read' }
const SERVERS = {
  core: { url: 'https://api.example.com', description: 'The public address' },
  operator: READ_HERE,
  payments: READ_HERE,
}

describe.each<DescribedApi>(['core', 'operator', 'payments'])('the %s host', (api) => {
  const address = () =>
    ({ core: service.coreUrl, operator: service.opsUrl, payments: service.paymentsUrl })[api]

  test('serves its description without credentials, valid and whole', async () => {
    const answer = await send(`${address()}/openapi.json`)
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(await new Validator().validate(JSON.parse(answer.text))).toEqual({ valid: true })
    expect(answer.body).toEqual({ ...descriptionOf(api), servers: [SERVERS[api]] })
  })

  test('does not send again what the caller has', async () => {
    const { headers } = await send(`${address()}/openapi.json`)
    const etag = headers.get('etag')!
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`]) {
      const again = await send(`${address()}/openapi.json`, { headers: { 'If-None-Match': known } })
      expect(again.status).toBe(304)
      expect(again.text).toBe('')
    }
    const changed = await send(`${address()}/openapi.json`, { headers: { 'If-None-Match': '"other"' } })
    expect(changed.status).toBe(200)
  })

  test('lets its page load nothing but its own files', async () => {
    const page = await send(`${address()}/docs`)
    expect(page.status).toBe(200)
    expect(page.headers.get('content-security-policy')).toMatch(/^default-src 'none'; script-src 'self';/)
    const loaded = [...page.text.matchAll(/(?:src|href|data-url)="([^"]+)"/g)].map(([, one]) => one!)
    expect(loaded).toContain('/openapi.json')
    for (const path of loaded.filter((one) => !one.startsWith('data:'))) {
      expect((await send(`${address()}${path}`)).status, path).toBe(200)
    }
  })

  test('hands out the client for Node.js, with the hash that its page names', async () => {
    const answer = await fetch(`${address()}/client.tgz`)
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/gzip'])
    const sha256 = createHash('sha256')
      .update(Buffer.from(await answer.arrayBuffer()))
      .digest('hex')
    expect(answer.headers.get('etag')).toBe(`"${sha256}"`)
    expect((await send(`${address()}/docs`)).text).toContain(sha256)
  })

  test.runIf(browserPath)(
    'shows every operation in a browser, and breaks none of its own rules',
    async () => {
      const { page, complaints } = await opened(`${address()}/docs`)
      for (const path of Object.values(descriptionOf(api).paths)) {
        for (const { summary } of Object.values(path)) expect(page).toContain(textOf(summary))
      }
      expect(page).not.toContain('Try it out')
      expect(complaints).toEqual([])
    },
  )
})

test('the payments host describes what it sends, without credentials', async () => {
  const answer = await send(`${service.paymentsUrl}/asyncapi.json`)
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
  expect(answer.body).toEqual(JSON.parse(JSON.stringify(eventDescription())))
  expect((await send(`${service.coreUrl}/asyncapi.json`)).status).toBe(404)
})

test('every host explains each code where its refusals say so', async () => {
  for (const host of [service.coreUrl, service.opsUrl, service.paymentsUrl, service.mcpUrl]) {
    const { body } = await send(`${host}/nowhere`)
    expect(body.code).toBe('not_found')
    const page = await send(body.doc_url.replace('https://api.example.com', service.coreUrl))
    expect(page.status).toBe(200)
    expect(page.headers.get('content-type')).toMatch(/^text\/html/)
    for (const [code] of ERROR_CODES) expect(page.text).toContain(`id="${code}"`)
  }
})

test('limits who reads and presents no credentials, by address and by bytes', async () => {
  const answers = await Promise.all(
    Array.from({ length: 40 }, () => send(`${service.coreUrl}/docs/swagger-ui-bundle.js`)),
  )
  const refused = answers.filter(({ status }) => status === 429)
  expect(refused.length).toBeGreaterThan(0)
  expect(refused[0]!.headers.get('retry-after')).toMatch(/^\d+$/)
})

function textOf(summary: string): string {
  return summary.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

/** A page as it is when its scripts have run, and what the browser wrote to its console. */
async function opened(url: string): Promise<{ page: string; complaints: string[] }> {
  const profile = await mkdtemp(join(tmpdir(), 'compstream-browser-'))
  try {
    const { stdout, stderr } = await promisify(execFile)(
      browserPath!,
      [
        ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run'],
        ...['--disable-background-networking', '--disable-component-update', '--disable-extensions'],
        ...['--enable-logging=stderr', '--v=0', `--user-data-dir=${profile}`],
        ...['--virtual-time-budget=20000', '--dump-dom', url],
      ],
      { maxBuffer: 64 * 1024 * 1024, timeout: 120_000 },
    )
    return { page: stdout, complaints: stderr.split('\n').filter((line) => line.includes(':CONSOLE:')) }
  } finally {
    await rm(profile, { recursive: true, force: true, maxRetries: 5 })
  }
}
