import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { MoveRefused } from '../../../application/ports/movable-log.ts'
import type { MasterKeys } from '../../crypto/master-keys.ts'
import { migrations } from '../../database/migrations/index.ts'
import { errorCode } from '../../error-code.ts'

const FORMAT = 1
const count = z.int().min(0)

/** What a backup says of itself. Nothing in it is secret or personal. */
const Manifest = z.object({
  format: z.literal(FORMAT),
  /** When the moment was that it shows, ISO 8601. */
  made_at: z.string(),
  /** The last migration of the database. */
  schema: z.string(),
  /** Names the backup, and makes its keys others than those of any other backup. Hex. */
  id: z.string().regex(/^[0-9a-f]{64}$/),
  /** Names the master key that its keys derive from. */
  master_key_id: z.string(),
  log: z.object({
    first_event_id: z.string(),
    events: count,
    streams: count,
    bytes: count,
    /** As `events verify` tells it. */
    log_hash: z.string(),
    /** Of the Merkle tree over the events, base64. */
    root_hash: z.string(),
    /** The newest signed checkpoint, whose events the backup holds. */
    checkpoint: z.object({ size: count, note: z.string(), key: z.string() }).nullable(),
  }),
  /** Rows beside the log, by table. */
  tables: z.record(z.string(), count),
})
export type Manifest = z.infer<typeof Manifest>

export const MANIFEST = 'manifest.json'

/** A name for a backup, see {@link Manifest}. */
export function newBackupId(): string {
  return randomBytes(32).toString('hex')
}

/** The key of a part of a backup. @throws MasterKeyError when its master key is not among the keys. */
export function keyOf(
  masterKeys: MasterKeys,
  { id, master_key_id }: Pick<Manifest, 'id' | 'master_key_id'>,
  part: 'manifest' | 'events' | 'tables',
) {
  return masterKeys.derive(master_key_id, Buffer.from(id, 'hex'), `backup ${part}`)
}

/** The text of a manifest file, with what shows that it was not changed. */
export function manifestText(manifest: Manifest, masterKeys: MasterKeys): string {
  return `${JSON.stringify({ ...manifest, mac: macOf(manifest, masterKeys).toString('hex') }, null, 2)}\n`
}

/**
 * Reads the manifest of a backup.
 * @throws MoveRefused when there is none, it was changed, or was made by a newer release; MasterKeyError when it was
 *   made under another master key.
 */
export async function readManifest(folder: string, masterKeys: MasterKeys): Promise<Manifest> {
  const path = join(folder, MANIFEST)
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    const code = errorCode(error)
    const isMissing = code === 'ENOENT' || code === 'ENOTDIR'
    throw new MoveRefused(
      `${folder} ${isMissing ? 'holds no backup' : 'cannot be read'}: ${MANIFEST}: ${code}`,
    )
  }
  const damaged = new MoveRefused(`The backup in ${folder} is damaged: ${MANIFEST} was changed or cut`)
  const { mac, ...rest } = objectIn(text) ?? {}
  if (typeof rest.format === 'number' && rest.format > FORMAT) throw newerRelease(folder)
  const parsed = Manifest.safeParse(rest)
  if (!parsed.success || typeof mac !== 'string') throw damaged
  const manifest = parsed.data
  const [given, expected] = [Buffer.from(mac, 'hex'), macOf(manifest, masterKeys)]
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) throw damaged
  if (!(manifest.schema in migrations)) throw newerRelease(folder)
  return manifest
}

function newerRelease(folder: string): MoveRefused {
  return new MoveRefused(`The backup in ${folder} was made by a newer release: restore it with that one`)
}

function objectIn(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' ? (value as Record<string, unknown> | null) : null
  } catch {
    return null
  }
}

function macOf(manifest: Manifest, masterKeys: MasterKeys): Buffer {
  // in the order of the schema, whatever that of the file
  const text = JSON.stringify(Manifest.parse(manifest))
  return createHmac('sha256', keyOf(masterKeys, manifest, 'manifest'))
    .update(text)
    .digest()
}
