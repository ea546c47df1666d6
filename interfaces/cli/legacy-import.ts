import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type { Called } from './endpoint-commands.ts'
import { hashedFile, LINE_FEED } from './export-files.ts'
import { CliError, Refusal, UsageError } from './io.ts'
import { AS_LONG_AS_IT_TAKES } from './operator-client.ts'
import { type Output, resource } from './output.ts'
import { Progress } from './progress.ts'

/** Pauses before a file is sent again when the connection or the service failed, in milliseconds. */
const AGAIN_MS = [1_000, 5_000, 15_000, 30_000] as const

/** What the service answers to an import. */
interface Imported {
  readonly import_id: string
  readonly refused_count: number
}

/**
 * Sends a file of JSON lines, and again when the connection or the service fails on the way: lines that are stored are
 * not stored again. Without a name, an import is called by its file and what that holds, so that the same command goes on.
 */
export async function importLines({ io, args, client, endpoint, input }: Called<object>): Promise<Output> {
  const file = args[0]!
  const isPiped = file === '-'
  if (isPiped && input.query.import_id === undefined) {
    throw new UsageError('Standard input has no name: give --import-id.')
  }
  const total = isPiped ? null : await sizeOf(file)
  const import_id = input.query.import_id ?? (await nameOf(file))
  const progress = new Progress(io, { lines: true })
  const sent = { ...input, query: { ...input.query, import_id } }
  try {
    for (let attempt = 0; ; attempt += 1) {
      const bytes: AsyncIterable<Buffer> = isPiped ? io.stdin : createReadStream(file)
      const lines = Readable.from(followed(bytes, total, progress), { objectMode: false })
      try {
        const { data } = await client().call(endpoint, { ...sent, lines }, AS_LONG_AS_IT_TAKES)
        progress.stop()
        return outcome(data as Imported)
      } catch (error) {
        lines.destroy()
        const pause = AGAIN_MS[attempt]
        if (isPiped || pause === undefined || !mayPass(error)) throw error
        await delay(pause)
      }
    }
  } finally {
    progress.stop()
  }
}

function outcome(data: Imported): Output {
  const { refused_count } = data
  const output = resource(data)
  if (refused_count === 0) return output
  const refused =
    refused_count === 1
      ? '1 line was refused; correct it in its place'
      : `${refused_count} lines were refused; correct them in their place`
  return { ...output, failure: new CliError(`${refused}, and send the file again.`) }
}

/** Whether the same file may go through in a moment. */
function mayPass(error: unknown): boolean {
  if (error instanceof Refusal) return error.status === 503
  return error instanceof CliError && error.error === 'Unreachable'
}

/** The same bytes, with progress shown. @param total bytes; null: unknown. */
async function* followed(
  lines: AsyncIterable<Buffer>,
  total: number | null,
  progress: Progress,
): AsyncGenerator<Buffer> {
  let bytes = 0
  let count = 0
  for await (const part of lines) {
    bytes += part.length
    for (let at = part.indexOf(LINE_FEED); at >= 0; at = part.indexOf(LINE_FEED, at + 1)) count += 1
    if (total === null) progress.show('importing', { done: count, note: 'lines' })
    else progress.show('importing', { done: bytes, total, note: `${count} lines` })
    yield part
  }
}

async function sizeOf(file: string): Promise<number> {
  try {
    return (await stat(file)).size
  } catch (error) {
    throw new CliError(`${file} cannot be read: ${(error as Error).message}`)
  }
}

async function nameOf(file: string): Promise<string> {
  const { sha256 } = await hashedFile(file)
  return `${basename(file).slice(0, 150)}-${sha256.slice(0, 16)}`
}
