import { setTimeout as delay } from 'node:timers/promises'
import cliProgress from 'cli-progress'
import type { Command } from 'commander'
import { CliError, type CliIo, UsageError } from './io.ts'
import { AS_LONG_AS_IT_TAKES, type OperatorClient } from './operator-client.ts'
import { type Output, resource, rows } from './output.ts'
import { given, part, verb, wholeNumber } from './verbs.ts'

const WATCH_MS = 500
/** What the service waits for when it is not told. */
const DRAIN_SECONDS = 30
/** How much longer than the service itself its answer to a drain is waited for, in milliseconds. */
const DRAIN_GRACE_MS = 60_000

/** clock, drain, projections, work, faults. */
export function machineryCommands(io: CliIo, program: Command): void {
  const clock = program.command('clock').description("the service's clock")
  verb(io, clock.command('show').description('what time it is'), async ({ client }) =>
    resource((await client().get('/clock')).data),
  )
  verb<{ seconds?: string; to?: string }>(
    io,
    clock
      .command('advance')
      .description('move a virtual clock; what falls due on the way is done in order')
      .option('--seconds <number>')
      .option('--to <time>', 'ISO 8601 with a zone'),
    async ({ client, options: { seconds, to } }) => {
      if ((seconds === undefined) === (to === undefined))
        throw new UsageError('Give either --seconds or --to.')
      const by = seconds === undefined ? { to } : { seconds: Number(seconds) }
      if (Number.isNaN(by.seconds)) throw new UsageError('--seconds takes a number.')
      return resource((await client().post('/clock/advance', by, AS_LONG_AS_IT_TAKES)).data)
    },
  )
  verb<{ timeout?: number }>(
    io,
    program
      .command('drain')
      .description('wait until no work is left at the present clock')
      .option('--timeout <seconds>', `default ${DRAIN_SECONDS}, at most 600`, wholeNumber),
    async ({ client, options: { timeout = DRAIN_SECONDS } }) => {
      const limit = { timeoutMs: timeout * 1000 + DRAIN_GRACE_MS }
      return resource((await client().post('/drain', { timeout_seconds: timeout }, limit)).data)
    },
  )

  projectionCommands(io, program)

  const work = program.command('work').description('work of the process managers')
  verb(io, work.command('list').description('due, leased and failed work'), async ({ client }) =>
    resource((await client().get('/work')).data),
  )
  verb<{ dryRun?: boolean }>(
    io,
    work.command('redrive').description('try failed work again').option('--dry-run', 'only count it'),
    async ({ client, options }) =>
      resource((await client().post('/work/redrive', { dry_run: options.dryRun ?? false })).data),
  )
  verb<{ key?: string; dryRun?: boolean }>(
    io,
    work
      .command('discard')
      .description('remove work of a kind that the release does not have')
      .argument('<process-manager>')
      .argument('<kind>')
      .option('--key <key>', 'only this piece')
      .option('--dry-run', 'only count it'),
    async ({ client, args, options }) => {
      const chosen = { process_manager: args[0], kind: args[1], ...given({ key: options.key }) }
      const body = { ...chosen, dry_run: options.dryRun ?? false }
      return resource((await client().post('/work/discard', body)).data)
    },
  )

  const faults = program.command('faults').description('injected faults; with the virtual clock only')
  verb<{ times?: number }>(
    io,
    faults
      .command('inject')
      .description('make the next uses of a point fail')
      .argument('<point>', 'card-processor, bank-link, bank-rail, mail, text, financing or pipeline')
      .argument('<mode>', 'unreachable, decline, timeout or hold')
      .option('--times <number>', 'default 1', wholeNumber),
    async ({ client, args, options }) => {
      const body = { point: args[0], mode: args[1], times: options.times ?? 1 }
      return resource((await client().post('/faults', body)).data)
    },
  )
  verb(
    io,
    faults.command('clear').description('end the faults of a point').argument('<point>'),
    async ({ client, args }) => resource((await client().post('/faults', { point: args[0], times: 0 })).data),
  )
}

interface RebuildOptions {
  readonly switch?: string
  readonly watch?: boolean
}

function projectionCommands(io: CliIo, program: Command): void {
  const projections = program.command('projections').description('read models and what builds them')
  verb(io, projections.command('list').description('all of them'), async ({ client }) => {
    const { data } = await client().get('/projections')
    return {
      json: data,
      text: rows(data as readonly unknown[], {
        name: 'name',
        version: 'version',
        state: 'state',
        position: 'position',
        'lag (events)': (row) => (row.lag as ProjectionLag | undefined)?.events,
        'lag (s)': (row) => (row.lag as ProjectionLag | undefined)?.seconds,
        'parked streams': 'parked_streams',
        rebuild: (row) => rebuildText(row.rebuild as Rebuild | null),
      }),
    }
  })
  verb(io, projections.command('show').argument('<name>'), async ({ client, args }) =>
    resource((await client().get(`/projections/${part(args[0])}`)).data),
  )
  verb<RebuildOptions>(
    io,
    projections
      .command('rebuild')
      .description('build the read model anew beside the live one')
      .argument('<name>')
      .option('--switch <word>', 'auto (default) or manual')
      .option('--watch', 'stay until it is done'),
    async ({ client, args, options }) => {
      const path = `/projections/${part(args[0])}`
      const started = await client().post(`${path}/rebuild`, given({ switch: options.switch }))
      return resource(options.watch ? await watch(io, client(), path) : started.data)
    },
  )
  for (const [name, what] of [
    ['switch', 'put the rebuilt read model in place'],
    ['rollback', 'put the read model back that was live before'],
    ['cancel', 'give a rebuild up'],
    ['pause', 'stop applying events'],
    ['resume', 'go on applying events'],
  ] as const) {
    verb(io, projections.command(name).description(what).argument('<name>'), async ({ client, args }) =>
      resource((await client().post(`/projections/${part(args[0])}/${name}`)).data),
    )
  }
  verb<{ dryRun?: boolean; stream?: string }>(
    io,
    projections
      .command('redrive')
      .description('try parked streams again')
      .argument('<name>')
      .option('--stream <name>', 'only this one')
      .option('--dry-run', 'only count'),
    async ({ client, args, options }): Promise<Output> => {
      const body = given({ stream: options.stream, dry_run: options.dryRun ?? false })
      return resource((await client().post(`/projections/${part(args[0])}/redrive`, body)).data)
    },
  )
}

interface ProjectionLag {
  readonly events: number
  readonly seconds: number
}

/** How far a rebuild is. */
interface Rebuild {
  readonly state: string
  readonly switch: 'auto' | 'manual'
  readonly position: number
  readonly head: number
  readonly events_left: number
  readonly events_per_second: number
  readonly seconds_left: number | null
  readonly failure: { readonly message: string } | null
  readonly comparison: object | null
}

function rebuildText(rebuild: Rebuild | null): string {
  if (!rebuild) return ''
  const share = rebuild.head > 0 ? Math.floor((100 * rebuild.position) / rebuild.head) : 100
  return `${share} % (${rebuild.state}, switch ${rebuild.switch})`
}

/**
 * Follows a rebuild until it has gone live, or waits for its switch.
 * @returns the projection as it stands then.
 * @throws CliError when the rebuild failed.
 */
async function watch(io: CliIo, client: OperatorClient, path: string): Promise<unknown> {
  const bar = io.stderr.isTTY
    ? new cliProgress.SingleBar({
        format: 'rebuilding  [{bar}] {percentage}%  {events} events to go  {rate}/s  {left}',
        stream: io.stderr,
        clearOnComplete: true,
      })
    : null
  bar?.start(0, 0, { events: 0, rate: 0, left: '' })
  try {
    for (;;) {
      const { data } = await client.get(path)
      const { rebuild } = data as { rebuild: Rebuild | null }
      if (!rebuild) return data
      if (rebuild.failure) throw new CliError(`The rebuild failed: ${rebuild.failure.message}`)
      const { position, head } = rebuild
      bar?.setTotal(head)
      bar?.update(position, {
        events: rebuild.events_left,
        rate: Math.round(rebuild.events_per_second),
        left: rebuild.seconds_left === null ? '' : `${Math.ceil(rebuild.seconds_left)} s left`,
      })
      if (rebuild.switch === 'manual' && rebuild.comparison !== null) return data
      await delay(WATCH_MS)
    }
  } finally {
    bar?.stop()
  }
}
