import { createMCPClient } from '@ai-sdk/mcp'
import { MCPClient } from '@zuplo/mcp/client'
import { HTTPClientTransport } from '@zuplo/mcp/transport/httpclient'
import { beforeAll, describe, expect, it } from 'vitest'
import { payrollRow, type SeededTenant, seedTenant } from '../../support/seed.ts'
import { type SharedService, sharedService } from '../../support/service.ts'

/** Clients of other authors than the protocol's, each with a transport of its own. */

let service: SharedService
let seeded: SeededTenant

beforeAll(async () => {
  service = await sharedService()
  seeded = await seedTenant(service)
})

type Given = Record<string, unknown>
/** What agents see of a client. */
interface Connected {
  readonly version: string
  tools(): Promise<readonly string[]>
  /** The text of a result; a refusal in the words of the client. */
  call(name: string, given: Given): Promise<string>
  close(): Promise<void>
}

const settings = () => ({
  url: `${service.mcpUrl}/mcp`,
  headers: { Authorization: `Bearer ${seeded.apiKey}` },
})
const textOf = (result: object) => (result as { content: { text: string }[] }).content[0]!.text

/** @param discovers whether it asks for the modern era, as it does by default. */
async function vercel(discovers: boolean): Promise<Connected> {
  const client = await createMCPClient({
    transport: { type: 'http', ...settings() },
    protocolVersionDiscovery: discovers,
  })
  return {
    version: client.initializeResult.protocolVersion,
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name, given) => textOf(await client.callTool({ name, arguments: given })),
    close: () => client.close(),
  }
}

async function zuplo(): Promise<Connected> {
  const client = new MCPClient({ name: 'acceptance', version: '1.0.0' })
  await client.connect(new HTTPClientTransport(settings()))
  const { protocolVersion: version } = await client.initialize()
  return {
    version,
    tools: async () => (await client.listTools()).map(({ name }) => name),
    call: async (name, given) => textOf(await client.callTool(name, given)),
    close: () => client.disconnect(),
  }
}

describe('a client of another author', () => {
  it.each([
    ['@ai-sdk/mcp as it comes', () => vercel(true), '2026-07-28'],
    ['@ai-sdk/mcp without discovery', () => vercel(false), '2025-03-26'],
    ['@zuplo/mcp', zuplo, '2025-03-26'],
  ])('(%s) lists the tools, calls each of them and reads a refusal', async (_what, connect, version) => {
    const client = await connect()
    expect(client.version).toBe(version)
    expect(await client.tools()).toEqual([
      'list_employer_policies',
      'get_expected_fields',
      'validate_payroll_submission',
      'submit_payroll_data',
      'get_submission_status',
      'get_validation_errors',
    ])
    const said = async (name: string, given: Given) => JSON.parse(await client.call(name, given))
    const ofEmployer = { employer_id: seeded.employerId }
    const policies = [{ policy_id: seeded.policyId }]
    expect(await said('list_employer_policies', ofEmployer)).toMatchObject({ policies })
    expect(await said('get_expected_fields', ofEmployer)).toMatchObject({ policies })
    const submission = { ...ofEmployer, policy_id: seeded.policyId, rows: [payrollRow()] }
    expect(await said('validate_payroll_submission', submission)).toMatchObject({
      validation: { valid: true },
    })
    const { submission_id } = await said('submit_payroll_data', submission)
    expect(await said('get_submission_status', { submission_id })).toMatchObject({ submission_id })
    expect(await said('get_validation_errors', { submission_id })).toMatchObject({ errors: [] })
    const refusal = await client.call('get_expected_fields', {}).catch(String)
    expect(refusal).toContain('employer_id is required: send the identifier of the employer as a string')
    await client.close()
  })
})
