import { createHash } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { leafOf } from '../../../application/audit/leaf.ts'
import { GrowingRoot, leafHash } from '../../../application/audit/merkle.ts'
import { hashOf } from '../../../application/commands/hash-chain.ts'
import { MoveRefused } from '../../../application/ports/movable-log.ts'
import { MasterKeyError, type MasterKeys } from '../../crypto/master-keys.ts'
import { BackupFiles, EVENTS, TABLES } from './backup-files.ts'
import { MANIFEST, readManifest } from './manifest.ts'

/** Told of every stretch: events so far, and the share of the log that they are, 0 to 1. */
export type ReportProgress = (phase: 'reading' | 'verifying', events: number, share: number) => void

/** A backup that was read to its end and is whole. */
export interface CheckedBackup {
  readonly files: BackupFiles
  /** Where process managers and integration events stood in the log, each position once and ascending. */
  readonly positions: readonly bigint[]
  /** Of all its files. */
  readonly bytes: number
}

/**
 * Reads a backup to its end and holds it against its manifest.
 * @throws MoveRefused when it is damaged or was made by a newer release; MasterKeyError when a key that it needs is missing.
 */
export async function checkBackup(
  folder: string,
  masterKeys: MasterKeys,
  report: ReportProgress,
  signal: AbortSignal,
): Promise<CheckedBackup> {
  const manifest = await readManifest(folder, masterKeys)
  const files = new BackupFiles(folder, manifest, masterKeys)
  const differs = (file: string) =>
    new MoveRefused(`The backup in ${folder} is damaged: ${file} does not hold what ${MANIFEST} says`)

  const positions = new Set<bigint>()
  const rows: Record<string, number> = {}
  for await (const { table, rows: some } of files.tables()) {
    signal.throwIfAborted()
    rows[table] = (rows[table] ?? 0) + some.length
    for (const { position, master_key_id: keyId } of some) {
      if (table === 'runtime.process_managers') positions.add(BigInt(position!))
      if (keyId != null && !masterKeys.has(keyId)) {
        throw new MasterKeyError(
          `MASTER_KEY does not contain the key ${keyId} that keys of the backup are wrapped with`,
        )
      }
    }
  }
  if (!isSame(rows, manifest.tables)) throw differs(TABLES)

  const tree = new GrowingRoot()
  const digest = createHash('sha256')
  for await (const events of files.events()) {
    signal.throwIfAborted()
    for (const event of events) {
      tree.add(leafHash(leafOf(event)))
      digest.update(hashOf(event.metadata))
    }
    report('verifying', tree.size, tree.size / manifest.log.events)
  }
  const { events, log_hash, root_hash } = manifest.log
  const isWhole = tree.size === events && tree.root.toString('base64') === root_hash
  if (!isWhole || digest.digest('hex') !== log_hash) throw differs(EVENTS)

  const sizes = await Promise.all([MANIFEST, EVENTS, TABLES].map((name) => stat(join(folder, name))))
  return {
    files,
    positions: [...positions].sort((one, other) => (one < other ? -1 : 1)),
    bytes: sizes.reduce((sum, { size }) => sum + size, 0),
  }
}

function isSame(one: Readonly<Record<string, number>>, other: Readonly<Record<string, number>>): boolean {
  const names = Object.keys(one)
  return names.length === Object.keys(other).length && names.every((name) => one[name] === other[name])
}
