import type { Command } from 'commander'
import type { Given } from './copy-events.ts'
import type { CliIo } from './io.ts'
import { resource } from './output.ts'
import { Progress } from './progress.ts'
import { untilStopped, verb } from './verbs.ts'

const PLACE = 'address, name of a variable that holds one, `embedded`, or a data directory'

/** events copy, verify, grant: what works on a log itself; the first two while no service does. */
export function logCommands(io: CliIo, events: Command): void {
  verb<{ from: string; to: string; fromDatabase?: string; toDatabase?: string; logOnly?: boolean }>(
    io,
    events
      .command('copy')
      .description(
        'move a whole log to another engine or server, prove that both are equal, and carry over what belongs to it; ' +
          'MASTER_KEY or MASTER_KEY_FILE holds the master key of the target where that is another database',
      )
      .requiredOption('--from <place>', PLACE)
      .requiredOption('--to <place>', PLACE)
      .option(
        '--from-database <place>',
        'database that belongs to the log; default: where the log is, or the one that is moved to',
      )
      .option(
        '--to-database <place>',
        'database that shall belong to the copy; default: where the copy is, or the same as before',
      )
      .option('--log-only', 'copy the log without its keys: a second copy, on which no service starts'),
    async ({ options }) => {
      // what it takes to reach the engines is loaded by these commands only
      const { copyEvents } = await import('./copy-events.ts')
      return resource(await watched(io, options, (given) => copyEvents({ ...options, ...given })))
    },
  )
  verb<{ at: string }>(
    io,
    events
      .command('verify')
      .description('check the hash chains of a whole log and tell what to compare it by with another one')
      .requiredOption('--at <place>', PLACE),
    async ({ options }) => {
      const { verifyEvents } = await import('./copy-events.ts')
      return resource(await watched(io, options, (given) => verifyEvents({ ...options, ...given })))
    },
  )
  verb(
    io,
    events
      .command('grant')
      .description(
        'let a user of EventStoreDB, and nobody else but administrators, read and append; EVENTSTORE_ADMIN_URL ' +
          'holds the address with an administrator, or EVENTSTORE_ADMIN_URL_FILE names a file with it',
      )
      .argument('<user>'),
    async ({ args }) => {
      const { grantEvents } = await import('./grant-events.ts')
      return resource(await grantEvents(args[0]!, io.env))
    },
  )
}

/**
 * Shows progress on stderr, as a bar on a terminal and in lines elsewhere (none with `--json`: there is nothing but
 * errors), and stops in good order on Ctrl-C.
 */
export async function watched<T>(
  io: CliIo,
  { json }: { readonly json?: boolean },
  work: (given: Given) => Promise<T>,
): Promise<T> {
  const progress = new Progress(io, { lines: !json })
  const pace = new Pace()
  const report = (phase: string, events: number, share: number) => {
    const { rate, left } = pace.at(phase, events, share)
    const note = `${events} events, ${rate}/s${left === null ? '' : `, ${left} s left`}`
    progress.show(phase, { done: Math.floor(share * 1_000), total: 1_000, note })
  }
  try {
    return await untilStopped((signal) => work({ env: io.env, signal, report }))
  } finally {
    progress.stop()
  }
}

/** Rate and time left of a phase, since it began. */
class Pace {
  #phase = ''
  #began = { at: 0, events: 0, share: 0 }

  /** @returns events per second; seconds left of this phase, null while that is not known. */
  at(phase: string, events: number, share: number): { rate: number; left: number | null } {
    const at = performance.now()
    if (phase !== this.#phase) {
      this.#phase = phase
      this.#began = { at, events, share }
    }
    const seconds = (at - this.#began.at) / 1000
    const done = share - this.#began.share
    return {
      rate: seconds > 0 ? Math.round((events - this.#began.events) / seconds) : 0,
      left: done > 0 ? Math.ceil(((1 - share) * seconds) / done) : null,
    }
  }
}
