import { Readable, Writable } from 'node:stream'
import { expect } from 'vitest'
import { runCli } from '../../interfaces/cli/cli.ts'

/** What a command line left behind. */
export interface CliRun {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
  /** The one JSON document of stdout. @throws when it is none. */
  json(): ReturnType<typeof JSON.parse>
}

/**
 * Runs a command line in this process, with its own input, output and environment.
 * @param options.isTTY whether somebody sits at a terminal, who types `stdin`.
 */
export async function cli(
  args: readonly string[],
  options: { env?: Record<string, string | undefined>; stdin?: string; isTTY?: boolean } = {},
): Promise<CliRun> {
  const stdout = collector()
  const stderr = Object.assign(collector(), { isTTY: options.isTTY ?? false })
  const code = await runCli(args, {
    stdin: Object.assign(Readable.from(options.stdin === undefined ? [] : [Buffer.from(options.stdin)]), {
      isTTY: options.isTTY ?? false,
    }),
    stdout,
    stderr,
    env: options.env ?? {},
  })
  return { code, stdout: stdout.text(), stderr: stderr.text(), json: () => JSON.parse(stdout.text()) }
}

/** A command that was refused by an operation: it says why, and shows no result. */
export function expectRefused(run: CliRun, why: RegExp): void {
  expect([run.code, run.stdout]).toEqual([1, ''])
  expect(run.stderr).toMatch(why)
}

function collector(): Writable & { text(): string } {
  const parts: Buffer[] = []
  const stream = new Writable({
    write(part: Buffer, _encoding, done) {
      parts.push(Buffer.from(part))
      done()
    },
  })
  return Object.assign(stream, { text: () => Buffer.concat(parts).toString() })
}
