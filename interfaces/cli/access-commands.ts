import type { Command } from 'commander'
import { baseUrl, newIdempotencyKey, send } from './http-client.ts'
import { type CliIo, Refusal } from './io.ts'
import { limitOf } from './operator-client.ts'
import { resource, rows } from './output.ts'
import { type Given, given, part, scope, texts, verb } from './verbs.ts'

interface ApiClientOptions {
  readonly tenantId: string
  readonly name: string
  readonly environment?: string
  readonly product?: readonly string[]
  readonly carrierIds?: 'all' | readonly string[]
  readonly employerIds?: 'all' | readonly string[]
  readonly requestSigning?: string
}

interface AgentOptions {
  readonly mcpUrl?: string
  readonly agentName: string
  readonly entityType: string
  readonly entityId: string
  readonly sandbox?: boolean
  readonly createdBy?: string
}

const DEFAULT_MCP = 'http://127.0.0.1:4001'

/** api-clients, inbound-connections, agents. Secrets are printed once, when they are made. */
export function accessCommands(io: CliIo, program: Command): void {
  const clients = program.command('api-clients').description('key pairs of partners for the REST APIs')
  verb<ApiClientOptions>(
    io,
    clients
      .command('create')
      .description('issue a key pair; the secret is shown once')
      .requiredOption('--tenant-id <id>')
      .requiredOption('--name <text>')
      .option('--environment <word>', 'live (default) or sandbox')
      .option('--product <word>', 'payroll, payments or all (default); repeat for several', texts)
      .option('--carrier-ids <ids>', 'all (default), or ids separated by commas', scope)
      .option('--employer-ids <ids>', 'all (default), or ids separated by commas', scope)
      .option('--request-signing <word>', 'off (default) or required'),
    async ({ client, options }) => {
      const body = given({
        tenant_id: options.tenantId,
        name: options.name,
        environment: options.environment,
        products: options.product,
        carrier_ids: options.carrierIds,
        employer_ids: options.employerIds,
        request_signing: options.requestSigning,
      })
      return resource((await client().create('/api-clients', body)).data)
    },
  )
  for (const [name, what] of [
    ['deactivate', 'switch a key pair off for good'],
    ['rotate', 'give a key pair a new secret, shown once'],
  ] as const) {
    verb(io, clients.command(name).description(what).argument('<client-id>'), async ({ client, args }) =>
      resource((await client().post(`/api-clients/${part(args[0])}/${name}`)).data),
    )
  }
  verb(io, clients.command('show').argument('<client-id>'), async ({ client, args }) =>
    resource((await client().get(`/api-clients/${part(args[0])}`)).data),
  )

  const connections = program.command('inbound-connections').description('signed payroll from partners')
  verb<{ tenantId: string; environment?: string }>(
    io,
    connections
      .command('create')
      .description('open a connection; the secret is shown once')
      .requiredOption('--tenant-id <id>')
      .option('--environment <word>', 'live (default) or sandbox'),
    async ({ client, options }) => {
      const body = given({ tenant_id: options.tenantId, environment: options.environment })
      return resource((await client().create('/inbound-connections', body)).data)
    },
  )
  verb(
    io,
    connections.command('deactivate').description('close a connection for good').argument('<connection-id>'),
    async ({ client, args }) =>
      resource((await client().post(`/inbound-connections/${part(args[0])}/deactivate`)).data),
  )
  verb(io, connections.command('show').argument('<connection-id>'), async ({ client, args }) =>
    resource((await client().get(`/inbound-connections/${part(args[0])}`)).data),
  )

  agentCommands(io, program)
}

function agentCommands(io: CliIo, program: Command): void {
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
      const body = given({
        agent_name: options.agentName,
        entity_type: options.entityType,
        entity_id: options.entityId,
        sandbox: options.sandbox ?? false,
        created_by: options.createdBy,
      })
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
      const query = new URLSearchParams(
        given({ entity_type: all.options.entityType, entity_id: all.options.entityId }) as Record<
          string,
          string
        >,
      )
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
    async (all) => resource(await agentsRequest(all, 'POST', `/api/v1/agents/${part(all.args[0])}/revoke`)),
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
