import { type Command, Option } from 'commander'
import { z } from 'zod'
import { agentCredentialEndpoints } from '../mcp/access/agent-credentials.ts'
import { operatorEndpoints } from '../operator-api/endpoints.ts'
import {
  type Called,
  type CommandEndpoint,
  commandAt,
  endpointCommand,
  type Further,
  outputOf,
} from './endpoint-commands.ts'
import { exportable } from './export-events.ts'
import { listEvents } from './follow-events.ts'
import { CliError, type CliIo, UsageError } from './io.ts'
import { importLines } from './legacy-import.ts'
import { AS_LONG_AS_IT_TAKES, DEFAULT_MCP } from './operator-client.ts'
import { type Output, printable, resource } from './output.ts'
import { rebuildProjection, showProjection } from './projection-rebuild.ts'
import { confirm, isAttended } from './secrets.ts'
import { showStory } from './story.ts'
import { exportSubject, subjectAccessCommands } from './subject-access.ts'
import { verb } from './verbs.ts'

/** What the service waits for when it is not told. */
const DRAIN_SECONDS = 30
/** How much longer than the service itself its answer to a drain is waited for, in milliseconds. */
const DRAIN_GRACE_MS = 60_000

/** Adds the operator's commands: one for each declaration that names one, and what is more than one call. */
export function operatorCommands(io: CliIo, program: Command): void {
  for (const endpoint of operatorEndpoints) {
    if (endpoint.command) endpointCommand(io, program, endpoint, FURTHER[endpoint.operation])
  }
  for (const endpoint of agentCredentialEndpoints) endpointCommand(io, program, endpoint, ON_TOOL_SERVER)
  subjectAccessCommands(io, program)
  clearCommand(io, program)
  linkCommand(io, program, 'link', 'link an employer to a payroll company', (linked, id) => [
    ...new Set([...linked, id]),
  ])
  linkCommand(io, program, 'unlink', 'end the link of an employer to a payroll company', (linked, id) =>
    linked.filter((one) => one !== id),
  )
}

// biome-ignore lint/suspicious/noExplicitAny: each has options of its own
const FURTHER: Readonly<Record<string, Further<any>>> = {
  advanceClock: {
    run: async ({ client, endpoint, input }) =>
      outputOf(endpoint, await client().call(endpoint, input, AS_LONG_AS_IT_TAKES)),
  },
  drain: {
    async run({ client, endpoint, input }) {
      const seconds = Number(input.body?.timeout_seconds ?? DRAIN_SECONDS)
      const limit = { timeoutMs: seconds * 1000 + DRAIN_GRACE_MS }
      return outputOf(endpoint, await client().call(endpoint, input, limit))
    },
  },
  verifyLog: {
    async run({ client, endpoint, input }) {
      const { data } = await client().call(endpoint, input, AS_LONG_AS_IT_TAKES)
      const report = data as { verified: boolean; first_problem: unknown }
      if (!report.verified) {
        throw new CliError(`The log was changed: ${JSON.stringify(report.first_problem)}`)
      }
      return resource(data)
    },
  },
  rebuildProjection: {
    options: (command) =>
      command
        .option(
          '--follow',
          'show progress until it has gone live or waits for its switch, and how it compares',
        )
        // as it was named before
        .addOption(new Option('--watch').hideHelp()),
    run: rebuildProjection,
  },
  showProjection: { run: showProjection },
  listEvents: exportable({
    options: (command) => command.option('--follow', 'show what is there, and stay for what comes'),
    run: listEvents,
  }),
  listStreamEvents: exportable({}),
  showStory: exportable({ run: showStory }),
  importLegacyCollections: {
    options: (command) => command.argument('<file>', 'JSON lines, or - for standard input'),
    run: importLines,
  },
  exportSubject,
  erase: {
    options: (command) => command.option('--yes', 'do not ask'),
    run: erase,
  },
}

/** How the endpoints of agents' credentials are called: they are on the tool server. */
const ON_TOOL_SERVER: Further<{ readonly mcpUrl?: string }> = {
  options: (command) =>
    command.option('--mcp-url <address>', `tool server (COMPSTREAM_MCP_URL, default ${DEFAULT_MCP})`),
  async run({ io, client, endpoint, input, options }) {
    const toolServer = client(options.mcpUrl ?? io.env.COMPSTREAM_MCP_URL ?? DEFAULT_MCP)
    return outputOf(endpoint, await toolServer.call(endpoint, input))
  },
}

function operation(name: string): CommandEndpoint {
  return operatorEndpoints.find((one) => one.operation === name)!
}

function clearCommand(io: CliIo, program: Command): void {
  const inject = operation('injectFault')
  const clear = {
    ...inject,
    summary: 'End the faults of a point',
    body: z.object({ point: (inject.body as z.ZodObject).shape.point! }),
    command: { name: 'faults clear', operands: ['point'] },
  }
  endpointCommand(io, program, clear, {
    run: async ({ client, input }) => {
      const body = { ...input.body, times: 0 }
      return resource((await client().call(inject, { ...input, body })).data)
    },
  })
}

function linkCommand(
  io: CliIo,
  program: Command,
  name: string,
  summary: string,
  changed: (linked: readonly string[], id: string) => readonly string[],
): void {
  const command = commandAt(program, `employers ${name}`)
    .description(summary)
    .argument('<employer-id>')
    .argument('<payroll-company-id>')
  verb(io, command, async ({ client, args }) => {
    const [employer_id, companyId] = args as [string, string]
    const request = { params: { employer_id }, query: {} }
    const { data } = await client().call(operation('showEmployer'), request)
    const { payroll_company_ids: linked } = data as { payroll_company_ids: readonly string[] }
    const body = { payroll_company_ids: changed(linked, companyId) }
    return resource((await client().call(operation('changeEmployer'), { ...request, body })).data)
  })
}

/** Says what an erasure would destroy and asks, unless it is told not to. */
async function erase({
  io,
  client,
  endpoint,
  input,
  options,
}: Called<{ readonly dryRun?: boolean; readonly yes?: boolean }>): Promise<Output> {
  const call = async (body: Readonly<Record<string, unknown>>) =>
    (await client().call(endpoint, { ...input, body })).data
  const body = input.body!
  const { subject, employer_id, connection_id, carrier_id } = body
  const named = [subject, employer_id, connection_id, carrier_id].filter((one) => one !== undefined)
  if (named.length !== 1) {
    throw new UsageError('Give one of a subject, --employer-id, --connection-id and --carrier-id.')
  }
  if (!body.dry_run && !options.yes) {
    if (!isAttended(io)) throw new UsageError('There is no terminal to ask at: give --yes, or --dry-run.')
    const { subjects, data_keys } = (await call({ ...body, dry_run: true })) as {
      readonly subjects: readonly string[]
      readonly data_keys: number
    }
    const keys = `${data_keys} data ${data_keys === 1 ? 'key' : 'keys'}`
    const what = `This destroys ${keys} of ${subjects.map(printable).join(', ')} for good.`
    if (!(await confirm(io, what))) throw new CliError('Nothing was erased.')
  }
  return resource(await call(body))
}
