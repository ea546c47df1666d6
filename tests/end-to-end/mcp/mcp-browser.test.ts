import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { browserPath, type Pages, servePages } from '../../support/browser.ts'
import { type SeededTenant, seedTenant } from '../../support/seed.ts'
import { type RunningService, startService } from '../../support/service.ts'

/** What a page does: the official clients, and what it sees of refusals. */
const SCRIPT = `
import { Client as Modern, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

export async function main({ url, apiKey, employerId }) {
  const seen = {}
  const note = async (name, look) => {
    seen[name] = await look().catch((error) => ({ failed: error.name }))
  }
  const authorized = { Authorization: 'Bearer ' + apiKey, 'Content-Type': 'application/json' }
  const ping = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
  await note('client', async () => {
    const client = new Client({ name: 'page', version: '1' })
    const transport = new StreamableHTTPClientTransport(new URL(url), {
      requestInit: { headers: { Authorization: 'Bearer ' + apiKey } },
    })
    await client.connect(transport)
    const { tools } = await client.listTools()
    const called = await client.callTool({ name: 'list_employer_policies', arguments: { employer_id: employerId } })
    await client.close()
    return { tools: tools.map(({ name }) => name), text: called.content[0].text }
  })
  await note('modern', async () => {
    const client = new Modern({ name: 'page', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
    const requestInit = { headers: { Authorization: 'Bearer ' + apiKey } }
    await client.connect(new ModernTransport(new URL(url), { requestInit }))
    const { tools } = await client.listTools()
    const call = (given) => client.callTool({ name: 'list_employer_policies', arguments: given })
    const called = await call({ employer_id: employerId })
    const refused = await call({})
    const version = client.getNegotiatedProtocolVersion()
    await client.close()
    return { version, tools: tools.length, text: called.content[0].text, isRefused: refused.isError }
  })
  await note('answer', async () => {
    const answer = await fetch(url, {
      method: 'POST',
      body: ping,
      headers: { ...authorized, 'X-Request-Id': 'page-1', 'Idempotency-Key': 'k-1', 'Mcp-Protocol-Version': '2025-03-26' },
    })
    return [answer.status, answer.headers.get('X-Request-Id')]
  })
  await note('refusal', async () => {
    const answer = await fetch(url, { method: 'POST', body: ping, headers: { ...authorized, Authorization: 'Bearer x' } })
    return [answer.status, answer.headers.get('WWW-Authenticate'), (await answer.json()).error.code]
  })
  await note('delete', async () => {
    const answer = await fetch(url, { method: 'DELETE', headers: authorized })
    return [answer.status, answer.headers.get('X-Request-Id') !== null]
  })
  await note('simple', async () => (await fetch(url, { method: 'POST', body: ping })).status)
  await note('cookies', async () => {
    const answer = await fetch(url, { method: 'POST', body: ping, headers: authorized, credentials: 'include' })
    return answer.status
  })
  return seen
}
`

describe.skipIf(browserPath === null)('a page in a real browser (needs chromium)', () => {
  let service: RunningService
  let seeded: SeededTenant
  let pages: Pages
  const apps = ['app.test', 'evil.test']

  beforeAll(async () => {
    const { outputFiles } = await build({
      stdin: { contents: SCRIPT, resolveDir: import.meta.dirname, loader: 'js' },
      bundle: true,
      format: 'esm',
      platform: 'browser',
      write: false,
      logLevel: 'silent',
    })
    pages = await servePages(outputFiles[0]!.text, apps)
    service = await startService({ env: { MCP_ALLOWED_ORIGINS: `http://app.test:${pages.port}` } })
    seeded = await seedTenant(service)
  })
  afterAll(async () => {
    await service?.stop()
    await pages?.close()
  })

  const settings = () => ({
    url: `${service.mcpUrl}/mcp`,
    apiKey: seeded.apiKey,
    employerId: seeded.employerId,
  })

  it.each(['app.test', 'localhost'])(
    'of an allowed origin (%s) lists tools, calls one and reads refusals',
    async (name) => {
      expect(await pages.run(name, settings())).toEqual({
        client: {
          tools: expect.arrayContaining(['list_employer_policies', 'submit_payroll_data']),
          text: expect.stringContaining(seeded.policyId),
        },
        modern: {
          tools: 6,
          text: expect.stringContaining(seeded.policyId),
          isRefused: true,
          version: '2026-07-28',
        },
        answer: [200, 'page-1'],
        refusal: [401, 'Bearer realm="mcp"', -32001],
        delete: [405, true],
        simple: 401,
        // the server asks for no cookies, so that the browser hides the answer to who sends them
        cookies: { failed: 'TypeError' },
      })
    },
  )

  it('of another origin reads nothing', async () => {
    const failed = { failed: 'TypeError' }
    expect(await pages.run('evil.test', settings())).toEqual({
      client: failed,
      modern: { failed: expect.any(String) },
      answer: failed,
      refusal: failed,
      delete: failed,
      simple: failed,
      cookies: failed,
    })
  })
})
