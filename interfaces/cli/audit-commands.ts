import type { Command } from 'commander'
import { CliError, type CliIo, UsageError } from './io.ts'
import { logCommands } from './log-commands.ts'
import { AS_LONG_AS_IT_TAKES } from './operator-client.ts'
import { type Output, printable, resource, rows } from './output.ts'
import { confirm, isAttended } from './secrets.ts'
import { type Given, given, jsonFile, part, verb, wholeNumber } from './verbs.ts'

interface EventOptions {
  readonly from?: string
  readonly limit?: number
  readonly type?: string
  readonly tenantId?: string
  readonly correlationId?: string
  readonly reveal?: boolean
}

/** streams, events, audit, erase. */
export function auditCommands(io: CliIo, program: Command): void {
  const streams = program.command('streams').description('single streams of the log')
  verb<EventOptions>(
    io,
    eventOptions(
      streams.command('show').description('events of a stream in order').argument('<stream>'),
      'first revision',
    ),
    async ({ client, args, options }) =>
      eventsOutput(await client().get(`/streams/${part(args[0])}`, eventQuery(options))),
  )
  verb<{ asOf?: string; revision?: number }>(
    io,
    streams
      .command('state')
      .description('the folded state of a stream at a point')
      .argument('<stream>')
      .option('--as-of <time>', 'ISO 8601 with a zone')
      .option('--revision <number>', 'inclusive', wholeNumber),
    async ({ client, args, options }) => {
      const query = { as_of: options.asOf, revision: options.revision }
      return resource((await client().get(`/streams/${part(args[0])}/state`, query)).data)
    },
  )

  const events = program.command('events').description('the whole log')
  verb<EventOptions>(
    io,
    eventOptions(events.command('list').description('events in log order'), 'go on after this position'),
    async ({ client, options }) => eventsOutput(await client().get('/events', eventQuery(options))),
  )
  logCommands(io, events)

  const audit = program.command('audit').description('tamper evidence')
  verb<{ stream?: string }>(
    io,
    audit
      .command('verify')
      .description('check the hash chains of the log, or of one stream')
      .option('--stream <name>'),
    async ({ client, options }) => {
      const { data } = await client().post(
        '/audit/verify',
        given({ stream: options.stream }),
        AS_LONG_AS_IT_TAKES,
      )
      const report = data as { verified: boolean; first_problem: unknown }
      if (!report.verified) {
        throw new CliError(`The log was changed: ${JSON.stringify(report.first_problem)}`)
      }
      return resource(data)
    },
  )

  verb<EraseOptions>(
    io,
    program
      .command('erase')
      .description('destroy the data key of a person or employer; there is no way back. It asks first')
      .argument('[subject]', 'person/<24 hex> or employer/<24 hex>')
      .option('--employer-id <id>', 'instead: a person by what the reports of this employer say')
      .option('--employee-id <text>')
      .option('--ssn <text>')
      .option('--first-name <text>')
      .option('--last-name <text>')
      .option(
        '--json-file <file>',
        'fields of the request from a JSON file: others can see options in the list of processes',
      )
      .option('--dry-run', 'only say how many data keys it would destroy')
      .option('--yes', 'do not ask'),
    erase,
  )
}

async function erase({ io, client, args, options }: Given<EraseOptions>): Promise<Output> {
  const body: Record<string, unknown> = {
    ...jsonFile(options.jsonFile),
    ...given({
      subject: args[0],
      employer_id: options.employerId,
      employee_id: options.employeeId,
      ssn: options.ssn,
      first_name: options.firstName,
      last_name: options.lastName,
    }),
  }
  if ((body.subject === undefined) === (body.employer_id === undefined)) {
    throw new UsageError('Give either a subject or --employer-id.')
  }
  if (options.dryRun || !options.yes) {
    if (!options.dryRun && !isAttended(io)) {
      throw new UsageError('There is no terminal to ask at: give --yes, or --dry-run.')
    }
    const { data } = await client().post('/erasures', { ...body, dry_run: true })
    if (options.dryRun) return resource(data)
    const { subjects, data_keys } = data as { subjects: readonly string[]; data_keys: number }
    const keys = `${data_keys} data ${data_keys === 1 ? 'key' : 'keys'}`
    const what = `This destroys ${keys} of ${subjects.map(printable).join(', ')} for good.`
    if (!(await confirm(io, what))) throw new CliError('Nothing was erased.')
  }
  return resource((await client().post('/erasures', body)).data)
}

interface EraseOptions {
  readonly jsonFile?: string
  readonly dryRun?: boolean
  readonly yes?: boolean
  readonly employerId?: string
  readonly employeeId?: string
  readonly ssn?: string
  readonly firstName?: string
  readonly lastName?: string
}

function eventOptions(command: Command, from: string): Command {
  return command
    .option('--from <point>', from)
    .option('--limit <number>', 'default 100, at most 1000', wholeNumber)
    .option('--type <name>', 'events of this type')
    .option('--tenant-id <id>', 'events of this tenant')
    .option('--correlation-id <id>', 'events that one request caused')
    .option('--reveal', 'open personal fields; this is recorded')
}

function eventQuery(options: EventOptions): Record<string, unknown> {
  const { from, limit, type, tenantId, correlationId, reveal } = options
  return { from, limit, type, tenant_id: tenantId, correlation_id: correlationId, reveal }
}

function eventsOutput(answer: { readonly data: unknown; readonly pagination: unknown }): Output {
  const { next } = (answer.pagination ?? {}) as { next?: unknown }
  const table = rows(answer.data as readonly unknown[], {
    position: 'position',
    stream: (row) => `${String(row.stream)} @${String(row.revision)}`,
    type: 'type',
    recorded: 'recorded_at',
    actor: (row) => actorOf(row.metadata),
    data: (row) => shortened(JSON.stringify(row.data)),
  })
  const more = next === null || next === undefined ? '' : `\nMore with --from ${String(next)}`
  return { json: answer, text: `${table}${more}` }
}

function actorOf(metadata: unknown): string {
  const { actor } = metadata as { actor?: { type: string; id: string } }
  return actor ? `${actor.type} ${actor.id}` : ''
}

function shortened(text: string): string {
  return text.length > 120 ? `${text.slice(0, 119)}…` : text
}
