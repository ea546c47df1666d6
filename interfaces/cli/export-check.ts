import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { checkedNote, ProofFails } from '../../application/audit/check-proof.ts'
import type { Witnessed } from '../../application/audit/checkpoint-note.ts'
import { isIncluded } from '../../application/audit/merkle.ts'
import {
  EVENTS,
  ExportedEvent,
  hashedFile,
  linesIn,
  MANIFEST,
  Manifest,
  TABLE,
  TABLE_HEAD,
  tableRow,
} from './export-files.ts'
import { CliError } from './io.ts'
import { jsonFile } from './verbs.ts'

/** What the check of an export shows. */
export interface CheckedExport {
  readonly kind: 'export'
  readonly events: number
  readonly first_position: string | null
  readonly last_position: string | null
  /** The export holds every event of the log up to the checkpoint. */
  readonly is_whole_log: boolean
  /** Events of the log that the checkpoint covers. */
  readonly size: number
  readonly signed_by: string
  readonly witnesses: readonly Witnessed[]
  readonly made_at: string
  readonly made_by: Manifest['made_by']
  readonly command: string
  readonly of: Manifest['of']
  readonly filters: Manifest['filters']
  /** Hex: what was told when it was made. */
  readonly manifest_sha256: string
}

/**
 * Checks the folder of an export with nothing but itself and keys: its files are those of the manifest, the table says what
 * the events say, and each event is in the log that the checkpoint covers.
 * @param keys verifier keys that are trusted, at least one.
 * @throws ProofFails, whose message names the file; CliError where one cannot be read; Error where a text is no verifier key.
 */
export async function checkExport(folder: string, keys: readonly string[]): Promise<CheckedExport> {
  const parsed = Manifest.safeParse(jsonFile(join(folder, MANIFEST)))
  if (!parsed.success) throw new CliError(`${join(folder, MANIFEST)} is no manifest of an export`)
  const { made_at, made_by, command, of, filters, checkpoint, files, ...said } = parsed.data
  const log = checkedNote(checkpoint, keys)
  for (const name of [EVENTS, TABLE] as const) {
    const { bytes, sha256 } = await read(name, () => hashedFile(join(folder, name)))
    if (bytes !== files[name].bytes || sha256 !== files[name].sha256) {
      throw new ProofFails(`${name} is not the file of the manifest: it was changed`)
    }
  }
  const table = createHash('sha256').update(TABLE_HEAD)
  let events = 0
  let first: string | null = null
  let last: ExportedEvent | null = null
  for await (const line of linesIn(join(folder, EVENTS))) {
    events += 1
    const event = eventIn(line, events)
    if (
      last &&
      (event.proof.leaf_index <= last.proof.leaf_index || BigInt(event.position) <= BigInt(last.position))
    ) {
      throw new ProofFails(`${EVENTS}, line ${events}: the event is out of order`)
    }
    refuseUnproven(event, log, events)
    table.update(tableRow(event))
    first ??= event.position
    last = event
  }
  if (
    events !== said.events ||
    first !== said.first_position ||
    (last?.position ?? null) !== said.last_position
  ) {
    throw new ProofFails(`${MANIFEST} counts other events than ${EVENTS} holds`)
  }
  if (table.digest('hex') !== files[TABLE].sha256) {
    throw new ProofFails(`${TABLE} says something else than ${EVENTS}`)
  }
  const { sha256: manifest_sha256 } = await hashedFile(join(folder, MANIFEST))
  return {
    kind: 'export',
    events,
    first_position: first,
    last_position: said.last_position,
    is_whole_log: events === log.size,
    size: log.size,
    signed_by: log.signedBy,
    witnesses: log.witnesses,
    made_at,
    made_by,
    command,
    of,
    filters,
    manifest_sha256,
  }
}

function eventIn(line: string, number: number): ExportedEvent {
  try {
    return ExportedEvent.parse(JSON.parse(line))
  } catch {
    throw new ProofFails(`${EVENTS}, line ${number}: it holds no event`)
  }
}

function refuseUnproven(
  { event_id, leaf_hash, proof }: ExportedEvent,
  { size, root }: { readonly size: number; readonly root: Buffer },
  line: number,
): void {
  const path = proof.path.map((hash) => Buffer.from(hash, 'base64'))
  const leaf = Buffer.from(leaf_hash, 'base64')
  if (!isIncluded(path, { index: proof.leaf_index, size, root, leaf })) {
    throw new ProofFails(
      `${EVENTS}, line ${line}: event ${event_id} is not at index ${proof.leaf_index} of the log of ${size} events`,
    )
  }
}

async function read<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw new CliError(`${name} cannot be read: ${(error as Error).message}`)
  }
}
