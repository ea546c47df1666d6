// @module-tag long: mcp-protocol and mcp-eras have what of it is the product's, in a shorter form
// @module-tag once: the answers do not depend on the installation
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { seedTenant } from '../../support/seed.ts'
import { sharedService } from '../../support/service.ts'

const SUITE = resolve('tests/conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js')
/** The suite asks for Node.js 22. */
const NODE = process.env.TEST_NODE ?? process.execPath
const OLDEST_NODE = 22

/**
 * Scenarios, or single checks of one, that look for what the server does not have, each with its reason. Most call
 * tools of the suite's own example server; what they say of messages as such (`wire-schema-valid`) holds for all.
 */
const NOT_APPLICABLE: Readonly<Record<string, readonly string[]>> = {
  'the six tools are all there is: the scenario calls a tool of the example server': [
    'tools-call-simple-text',
    'tools-call-image',
    'tools-call-audio',
    'tools-call-embedded-resource',
    'tools-call-mixed-content',
    'tools-call-error',
    'tools-call-with-progress',
    'json-schema-2020-12',
  ],
  'the server logs nothing to clients': [
    'logging-set-level',
    'tools-call-with-logging',
    'server-stateless:sep-2575-server-no-log-without-loglevel',
  ],
  'the server asks nothing of clients: no sampling, elicitation or roots, no results that want input': [
    'tools-call-sampling',
    'tools-call-elicitation',
    'elicitation-sep1034-defaults',
    'elicitation-sep1330-enums',
    'input-required-result-basic-elicitation',
    'input-required-result-basic-sampling',
    'input-required-result-basic-list-roots',
    'input-required-result-request-state',
    'input-required-result-multiple-input-requests',
    'input-required-result-multi-round',
    'input-required-result-non-tool-request',
    'input-required-result-result-type',
    'input-required-result-tampered-state',
    'input-required-result-capability-check',
    'server-stateless:sep-2575-server-rejects-undeclared-capability',
    'server-stateless:sep-2575-missing-capability-http-400',
    'server-stateless:sep-2575-http-server-no-independent-requests-on-stream',
  ],
  'the server completes no arguments': ['completion-complete'],
  'the server has no resources': [
    'resources-list',
    'resources-read-text',
    'resources-read-binary',
    'resources-templates-read',
    'resources-subscribe',
    'resources-unsubscribe',
    'caching:sep-2549-resources-list-caching-hints',
    'caching:sep-2549-resources-templates-list-caching-hints',
  ],
  'the server has no prompts': [
    'prompts-list',
    'prompts-get-simple',
    'prompts-get-with-args',
    'prompts-get-embedded-resource',
    'prompts-get-with-image',
    'caching:sep-2549-prompts-list-caching-hints',
  ],
  'no argument of a tool goes into a header (x-mcp-header)': ['http-custom-header-server-validation'],
  'an extension of the protocol that the server does not have: tasks': [
    'tasks-lifecycle',
    'tasks-capability-negotiation',
    'tasks-wire-fields',
    'tasks-request-state-removal',
    'tasks-mrtr-input',
    'tasks-request-headers',
    'tasks-dispatch-and-envelope',
    'tasks-required-task-error',
    'tasks-mrtr-composition',
  ],
}
/** The check that every message of a scenario is as the schema of the revision has it. */
const WIRE = 'wire-schema-valid'
const excused = Object.values(NOT_APPLICABLE).flat()

/** What became of the scenarios of one revision. */
interface Account {
  /** Scenarios that found something to check, and no fault beside those that are excused one by one. */
  readonly held: readonly string[]
  /** Scenarios as far as they are excused as a whole, else single checks, as `scenario:check`. */
  readonly failed: readonly string[]
}

/** Runs all scenarios that a revision of the protocol requires of servers, and those beside them that it knows. */
async function run(revision: string, url: string): Promise<Account> {
  const folder = await mkdtemp(join(tmpdir(), 'compstream-conformance-'))
  try {
    const given = ['server', '--url', url, '--requirements', revision, '--output-dir', folder]
    const suite = spawn(NODE, [SUITE, ...given], { stdio: ['ignore', 'ignore', 'inherit'] })
    await new Promise((done) => suite.once('close', done))
    const held: string[] = []
    const failed = new Set<string>()
    for (const name of await readdir(folder)) {
      const scenario = name.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT.*$/, '')
      const checks: readonly { id: string; status: string }[] = JSON.parse(
        await readFile(join(folder, name, 'checks.json'), 'utf8'),
      )
      const faults = checks
        .filter(({ status }) => status === 'FAILURE')
        .map(({ id }) => (excused.includes(scenario) && id !== WIRE ? scenario : `${scenario}:${id}`))
      for (const fault of faults) failed.add(fault)
      const hasHeld = checks.some(({ id, status }) => status === 'SUCCESS' && id !== WIRE)
      if (hasHeld && faults.every((one) => one !== scenario && excused.includes(one))) held.push(scenario)
    }
    return { held, failed: [...failed] }
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** Listens on a free port and forwards to the service, with the key: the suite can be given none. */
async function startKeyedProxy(to: URL, apiKey: string) {
  const proxy = createServer((asked, answer) => {
    const headers = { ...asked.headers, authorization: `Bearer ${apiKey}` }
    const forwarded = request(new URL(asked.url!, to), { method: asked.method, headers }, (given) => {
      answer.writeHead(given.statusCode!, given.rawHeaders)
      given.pipe(answer)
    })
    forwarded.once('error', () => answer.destroy())
    asked.pipe(forwarded)
  })
  await new Promise<void>((listening) => proxy.listen(0, '127.0.0.1', listening))
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/mcp`,
    close: () => new Promise((closed) => proxy.close(closed)),
  }
}

/** The number before the first dot of what the program calls its version. */
async function versionOf(node: string): Promise<number> {
  const asked = spawn(node, ['--version'], { stdio: ['ignore', 'pipe', 'inherit'] })
  asked.stdout.setEncoding('utf8')
  const said = await asked.stdout.toArray()
  return Number(/^v(\d+)\./.exec(said.join(''))?.[1])
}

const canRun = existsSync(SUITE) && (await versionOf(NODE)) >= OLDEST_NODE

describe.skipIf(!canRun)(
  `the protocol's conformance suite (needs Node.js ${OLDEST_NODE}, and npm ci --prefix tests/conformance)`,
  () => {
    let legacy: Account
    let modern: Account

    beforeAll(async () => {
      const service = await sharedService()
      const { apiKey } = await seedTenant(service)
      const proxy = await startKeyedProxy(new URL(service.mcpUrl), apiKey)
      legacy = await run('2025-11-25', proxy.url)
      modern = await run('2026-07-28', proxy.url)
      await proxy.close()
    })

    it('finds what it asks of a server with tools alone, in both eras', () => {
      expect(legacy.held.toSorted()).toEqual([
        'dns-rebinding-protection',
        'ping',
        'server-initialize',
        'tools-list',
      ])
      expect(modern.held.toSorted()).toEqual([
        'caching',
        'dns-rebinding-protection',
        'http-header-validation',
        'input-required-result-unsupported-methods',
        'input-required-result-validate-input',
        'sep-2164-resource-not-found',
        'server-sse-multiple-streams',
        'server-stateless',
        'tools-list',
      ])
    })

    it('misses nothing but what the server has a reason not to have', () => {
      expect([...new Set([...legacy.failed, ...modern.failed])].toSorted()).toEqual(excused.toSorted())
    })
  },
)
