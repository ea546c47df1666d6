import type { Command } from 'commander'
import { baseUrl, newIdempotencyKey, send } from './http-client.ts'
import { type CliIo, Refusal } from './io.ts'
import { limitOf } from './operator-client.ts'
import { resource, rows } from './output.ts'
import { type Given, verb } from './verbs.ts'

interface AgentOptions {
  readonly mcpUrl?: string
  readonly agentName: string
  readonly entityType: string
  readonly entityId: string
  readonly sandbox?: boolean
  readonly createdBy?: string
}

const DEFAULT_MCP = 'http://127.0.0.1:4001'

/** agents: their credentials, on the tool server. The key is printed once, when it is made. */
export function agentCommands(io: CliIo, program: Command): void {
  const agents = program.command('agents').description('credentials of AI agents on the tool server')
  const hosted = (command: Command) =>
    command.option('--mcp-url <address>', `tool server (COMPSTREAM_MCP_URL, default ${DEFAULT_MCP})`)

  verb<AgentOptions>(
    io,
    hosted(
      agents
        .command('create')
        .description('issue a credential; the key is shown once')
        .requiredOption('--agent-name <text>')
        .requiredOption('--entity-type <word>', 'payroll_company or employer')
        .requiredOption('--entity-id <id>')
        .option('--sandbox', 'every submission becomes a dry run')
        .option('--created-by <text>'),
    ),
    async (all) => {
      const { options } = all
      const body = {
        agent_name: options.agentName,
        entity_type: options.entityType,
        entity_id: options.entityId,
        sandbox: options.sandbox ?? false,
        created_by: options.createdBy,
      }
      return resource(await agentsRequest(all, 'POST', '/api/v1/agents', body))
    },
  )
  verb<{ mcpUrl?: string; entityType?: string; entityId?: string }>(
    io,
    hosted(
      agents
        .command('list')
        .description('credentials without their keys')
        .option('--entity-type <word>', 'payroll_company or employer')
        .option('--entity-id <id>'),
    ),
    async (all) => {
      const { entityType, entityId } = all.options
      const query = new URLSearchParams({
        ...(entityType !== undefined && { entity_type: entityType }),
        ...(entityId !== undefined && { entity_id: entityId }),
      })
      const answer = (await agentsRequest(all, 'GET', `/api/v1/agents?${query}`)) as {
        agents: readonly unknown[]
      }
      return {
        json: answer,
        text: rows(answer.agents, {
          'credential id': 'credential_id',
          name: 'agent_name',
          entity: (row) => `${String(row.entity_type)} ${String(row.entity_id)}`,
          sandbox: 'sandbox',
          key: 'api_key_prefix',
          status: 'status',
          'last used': 'last_used_at',
        }),
      }
    },
  )
  verb<{ mcpUrl?: string }>(
    io,
    hosted(agents.command('revoke').description('end a credential for good').argument('<credential-id>')),
    async (all) =>
      resource(await agentsRequest(all, 'POST', `/api/v1/agents/${encodeURIComponent(all.args[0]!)}/revoke`)),
  )
}

async function agentsRequest(
  { io, options, token }: Given<{ readonly mcpUrl?: string }>,
  method: 'GET' | 'POST',
  path: string,
  body?: unknown,
): Promise<unknown> {
  const answer = await send({
    method,
    url: `${baseUrl(options.mcpUrl ?? io.env.COMPSTREAM_MCP_URL ?? DEFAULT_MCP)}${path}`,
    headers: {
      Authorization: `Bearer ${await token()}`,
      ...(body === undefined ? {} : { 'Idempotency-Key': newIdempotencyKey() }),
    },
    ...(body === undefined ? {} : { body }),
    ...limitOf(options),
  })
  if (answer.status < 400) return answer.body
  throw new Refusal(answer.status, answer.body)
}
