import { randomBytes } from 'node:crypto'
import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { Command } from 'commander'
import type { ConsistencyProof } from '../../application/audit/log-tree.ts'
import { sentenceOf, wordsOf } from '../../application/audit/sentences.ts'
import type { ShownEvent } from '../../application/audit/streams.ts'
import { errorCode } from '../../infrastructure/error-code.ts'
import { syncDirectory } from '../../infrastructure/private-files.ts'
import { operatorEndpoints } from '../operator-api/endpoints.ts'
import { type Called, type CommandEndpoint, type Further, outputOf } from './endpoint-commands.ts'
import {
  EVENTS,
  type ExportedEvent,
  HashedFile,
  MANIFEST,
  manifestOf,
  TABLE,
  TABLE_HEAD,
  tableRow,
  type Written,
} from './export-files.ts'
import { CliError, UsageError } from './io.ts'
import { type Output, resource } from './output.ts'
import { Progress } from './progress.ts'
import { untilStopped } from './verbs.ts'

/** Events of an answer at the most; endpoints give fewer where these are large. */
const PAGE = 1_000
/** What says how an answer looks, and an export decides by itself. */
const OF_ANSWERS = ['limit', 'graph', 'follow'] as const

/** An event as it is answered with its proof: null where it came after the checkpoint. */
interface Answered extends Omit<ExportedEvent, 'sentence' | 'proof'> {
  readonly data: unknown
  readonly metadata: ShownEvent['metadata']
  readonly sentence?: string
  readonly proof: ExportedEvent['proof'] | null
}

/** A command that lists events, which can export them instead. */
export function exportable<Options extends object>({
  options,
  run = ({ client, endpoint, input }) =>
    client()
      .call(endpoint, input)
      .then((answer) => outputOf(endpoint, answer)),
}: Further<Options>): Further<Options & { readonly export?: string }> {
  return {
    options(command: Command) {
      options?.(command)
      command.option(
        '--export <folder>',
        'write all of them into a new folder, as JSON lines and CSV, with proofs that `audit check` checks without the service',
      )
    },
    run: (called) =>
      called.options.export === undefined ? run(called) : exportEvents(called, called.options.export),
  }
}

/** Exports the events of a command as of a checkpoint: that of `tree_size`, or one that is signed now. @throws CliError, UsageError */
async function exportEvents(called: Called<object>, folder: string): Promise<Output> {
  const { io, client, endpoint, input, options } = called
  for (const name of OF_ANSWERS) {
    if (input.query[name] !== undefined || (options as Readonly<Record<string, unknown>>)[name]) {
      throw new UsageError(`--export takes all events: leave --${name} out.`)
    }
  }
  const operator = client()
  const ask = async (operation: string, query = {}) =>
    (await operator.call(operationOf(operation), { params: {}, query })).data
  const progress = new Progress(io, { lines: !options.json })
  try {
    return await untilStopped(async (signal) => {
      await refuseFull(folder)
      const by = (await ask('showMe')) as { readonly operator_id: string; readonly role: string }
      const signed = await checkpointOf(input.query.tree_size, ask)
      const pages = pagesOf(called, signed.size, signal)
      const manifest = await writeExport(folder, pages, {
        describe: (written) => ({
          made_at: new Date().toISOString(),
          made_by: { operator_id: by.operator_id, role: by.role },
          command: endpoint.command!.name,
          of: { ...input.params },
          filters: { ...input.query },
          ...written,
          checkpoint: signed.note,
          key: signed.key,
        }),
        report: (done) => progress.show('exporting', { done, note: 'events' }),
      })
      return resource({ folder, ...manifest })
    })
  } finally {
    progress.stop()
  }
}

interface Signed {
  readonly size: number
  readonly note: string
  readonly key: string
}

/** @param size of the checkpoint, undefined: one that is signed now. @throws CliError where there is none of that size. */
async function checkpointOf(
  size: unknown,
  ask: (operation: string, query?: object) => Promise<unknown>,
): Promise<Signed> {
  if (size === undefined) return (await ask('makeCheckpoint')) as Signed
  const { to, key } = (await ask('proveConsistency', { from: size, to: size })) as ConsistencyProof
  return { size: Number(size), note: to, key }
}

function operationOf(name: string): CommandEndpoint {
  return operatorEndpoints.find(({ operation }) => operation === name)!
}

/** The events up to a checkpoint, page by page, each with its sentence. */
async function* pagesOf(
  { client, endpoint, input }: Called<object>,
  tree_size: number,
  signal: AbortSignal,
): AsyncGenerator<readonly ExportedEvent[], void, void> {
  const operator = client()
  for (let next: unknown = input.query.from; next !== null; ) {
    if (signal.aborted) throw new CliError('stopped; nothing was exported')
    const from = next === undefined ? {} : { from: next }
    const query = { ...input.query, ...from, limit: PAGE, tree_size }
    const { data, pagination } = await operator.call(endpoint, { ...input, query })
    const answered = (
      Array.isArray(data) ? data : (data as { readonly events: unknown }).events
    ) as Answered[]
    const events = answered.flatMap((event) => {
      const { proof } = event
      return proof ? [{ ...event, sentence: event.sentence ?? sentenceIn(event), proof }] : []
    })
    yield events
    if (events.length < answered.length) return
    next = (pagination as { readonly next: unknown }).next
  }
}

/** Of an event that does not fit its type, no more is said than its name. */
function sentenceIn(event: Pick<Answered, 'type' | 'data' | 'metadata'>): string {
  try {
    if (typeof event.data === 'object') return sentenceOf(event)
  } catch {
    // what another program wrote
  }
  return `${wordsOf(event.type)}.`
}

/** What is known of an export once its files are written. */
interface Contents {
  readonly events: number
  readonly first_position: string | null
  readonly last_position: string | null
  readonly files: { readonly [EVENTS]: Written; readonly [TABLE]: Written }
}

/**
 * Writes an export; the folder is there once all of it is.
 * @param folder a new one, or an empty one.
 * @param parts.describe the manifest. @param parts.report told how many events are written.
 * @returns the manifest, and its hash.
 * @throws CliError; nothing is left then.
 */
export async function writeExport(
  folder: string,
  pages: AsyncIterable<readonly ExportedEvent[]>,
  parts: {
    readonly describe: (contents: Contents) => Parameters<typeof manifestOf>[0]
    readonly report: (events: number) => void
  },
) {
  const place = resolve(folder)
  const draft = `${place}.unfinished-${randomBytes(4).toString('hex')}`
  const open: HashedFile[] = []
  const begun = async (name: string) => {
    const file = await HashedFile.create(draft, name)
    open.push(file)
    return file
  }
  try {
    await refuseFull(folder)
    await mkdir(draft, { mode: 0o700 })
    const [lines, table] = [await begun(EVENTS), await begun(TABLE)]
    await table.add(TABLE_HEAD)
    let events = 0
    let [first, last]: (string | null)[] = [null, null]
    for await (const page of pages) {
      await lines.add(page.map((event) => `${JSON.stringify(event)}\n`).join(''))
      await table.add(page.map(tableRow).join(''))
      events += page.length
      first ??= page[0]?.position ?? null
      last = page.at(-1)?.position ?? last
      parts.report(events)
    }
    const files = { [EVENTS]: await lines.end(), [TABLE]: await table.end() }
    const manifest = parts.describe({ events, first_position: first!, last_position: last!, files })
    const told = await begun(MANIFEST)
    await told.add(manifestOf(manifest))
    const { sha256: manifest_sha256 } = await told.end()
    await syncDirectory(draft)
    // onto an empty folder, never over a file
    await rename(draft, place)
    await syncDirectory(dirname(place))
    return { ...manifest, manifest_sha256 }
  } catch (error) {
    for (const file of open) await file.close()
    await rm(draft, { recursive: true, force: true })
    throw orRefused(folder, error)
  }
}

async function refuseFull(folder: string): Promise<void> {
  const names = await readdir(folder).catch((error: unknown) => {
    if (errorCode(error) === 'ENOENT') return []
    throw orRefused(folder, error)
  })
  if (names.length > 0)
    throw new CliError(`${folder} is not empty: an export takes a new folder, or an empty one`)
}

/** A file system's error as one clear line. */
function orRefused(folder: string, error: unknown): unknown {
  const { code, syscall } = error as { readonly code?: string; readonly syscall?: string }
  return code !== undefined && syscall !== undefined
    ? new CliError(`${folder} cannot be written: ${code}`)
    : error
}
