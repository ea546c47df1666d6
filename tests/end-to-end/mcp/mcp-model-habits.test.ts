import { beforeAll, expect, it } from 'vitest'
import { operate, payrollRow, type SeededTenant, seedTenant } from '../../support/seed.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { type SharedService, sharedService } from '../../support/service.ts'

/** An agent with the habits of a language model, always the same one. */

const CALLS = 200
const SEED = 20_260_728
const MODERN = '2026-07-28'
const META = {
  'io.modelcontextprotocol/protocolVersion': MODERN,
  'io.modelcontextprotocol/clientCapabilities': {},
}

let service: SharedService
let seeded: SeededTenant

beforeAll(async () => {
  service = await sharedService()
  seeded = await seedTenant(service)
})

type Given = Record<string, unknown>

/** What a model makes of a submission that it means otherwise, or not at all; all of it must be refused. */
const SLIPS: readonly ((given: Given) => Given)[] = [
  (given) => ({ ...given, dry_run: 'true' }),
  (given) => ({ ...given, dryRun: true }),
  (given) => ({ ...given, dryrun: 'yes' }),
  (given) => ({ ...given, dry_run: 1 }),
  (given) => ({ ...given, dry_run: null }),
  (given) => ({ ...given, rows: JSON.stringify(given.rows) }),
  (given) => ({ ...given, rows: (given.rows as Given[])[0] }),
  (given) => ({ ...given, rows: [] }),
  (given) => ({ ...given, rows: ['Ada Baker, 1000'] }),
  (given) => ({ ...given, confirm: true }),
  (given) => ({ ...given, validate_only: true }),
  (given) => ({ ...given, policy_id: Number.parseInt(String(given.policy_id), 16) }),
  (given) => ({ ...given, policy_id: seeded.policyNumber }),
  (given) => ({ ...given, policy_id: `${given.policy_id} ` }),
  (given) => ({ ...given, employer_id: seeded.employerName }),
  (given) => ({ ...given, employer_id: String(given.employer_id).toUpperCase().replace(/^./, 'G') }),
  ({ employer_id, ...given }) => ({ ...given, employerId: employer_id }),
  ({ policy_id, ...given }) => ({ ...given, policyId: policy_id }),
  (given) => ({ ...given, idempotency_key: 7 }),
  (given) => ({ ...given, idempotency_key: '' }),
]

const post = (given: Given, signal?: AbortSignal) => {
  const name = 'submit_payroll_data'
  return fetch(`${service.mcpUrl}/mcp`, {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${seeded.apiKey}`,
      'Content-Type': 'application/json',
      'MCP-Protocol-Version': MODERN,
      'Mcp-Method': 'tools/call',
      'Mcp-Name': name,
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name, arguments: given, _meta: META },
    }),
    ...(signal && { signal }),
  })
}

async function submit(given: Given) {
  const { result } = (await (await post(given)).json()) as {
    result: { isError?: true; content: [{ text: string }] }
  }
  return { isError: result.isError === true, said: JSON.parse(result.content[0].text) }
}

/** Ids of all payroll files of the agent's tenant, from the log. */
async function storedFiles(): Promise<readonly string[]> {
  const query = `type=PayrollFileReceived&tenant_id=${seeded.tenantId}&limit=1000`
  const events: { data: { file_id: string } }[] = await operate(service, 'GET', `/events?${query}`)
  return events.map(({ data }) => data.file_id).sort()
}

it('a model that mistypes, invents, repeats, cancels and resends submits what it meant, once', async () => {
  const { between, pick } = seededRandom(SEED)
  const meant: string[] = []
  let refused = 0
  for (let index = 0; index < CALLS; index += 1) {
    const given: Given = {
      employer_id: seeded.employerId,
      policy_id: seeded.policyId,
      rows: [payrollRow({ gross_wages: index + 1 })],
      idempotency_key: `habit-${index}`,
    }
    const mood = between(1, 10)
    if (mood <= 7) {
      const { isError, said } = await submit(SLIPS[refused % SLIPS.length]!(given))
      expect([isError, said.code, said.field, said.message]).toEqual([
        true,
        expect.stringMatching(/^[a-z_]+$/),
        expect.any(String),
        expect.stringContaining(said.field),
      ])
      refused += 1
    } else if (mood === 8) {
      expect((await submit({ ...given, dry_run: true })).said.status).toBe('dry_run_complete')
    } else {
      // half of the first calls are cancelled before, or while, they are answered
      if (pick([true, false])) {
        const cancelled = new AbortController()
        const lost = post(given, cancelled.signal).catch(() => null)
        if (pick([true, false])) setImmediate(() => cancelled.abort())
        else cancelled.abort()
        await lost
      }
      const first = await submit(given)
      const again = await submit(given)
      expect(first.said.status).toBe('submitted_and_validated')
      expect(again.said).toEqual(first.said)
      meant.push(first.said.file_id)
    }
  }
  expect(refused).toBeGreaterThan(100)
  expect(meant.length).toBeGreaterThan(20)
  expect(await storedFiles()).toEqual(meant.sort())
})
