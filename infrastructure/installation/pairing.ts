import { CommandHandler } from '../../application/commands/command-handler.ts'
import { type EventRegistry, UnreadableEvent } from '../../application/commands/event-registry.ts'
import { type EventLog, LOG_START, type StoredEvent } from '../../application/ports/event-log.ts'
import { streamOf } from '../../domain/kernel/decider.ts'
import { isRejection } from '../../domain/kernel/rejection.ts'
import {
  INSTALLATION_ID,
  type InstallationEvent,
  installation,
} from '../../domain/operations/installation.ts'
import { systemClock } from '../clock/system-clock.ts'
import { ConfigError } from '../config-error.ts'
import type { MasterKeys } from '../crypto/master-keys.ts'
import type { Database } from '../database/database.ts'
import { FINGERPRINT_ROOT, openFingerprints } from '../secrets/personal-data.ts'
import { PersonalDataKeys } from '../secrets/personal-data-keys.ts'
import { PostgresSecretVault } from '../secrets/vault.ts'
import { type LogEngine, refuseOtherLog, rememberLog } from './log-pairing.ts'
import { takeBackLostEvents } from './lost-events.ts'

/** A database lacks the keys that a log was written with; the message is one clear line. */
export class KeysMissing extends ConfigError {
  override readonly name = 'KeysMissing'
}

/** How far the first sealed value of a log is looked for, in events. */
const LOOKED_THROUGH = 1_000
const PAGE = 100
const SEALED = /"sld1\.([A-Za-z0-9/_:]{1,80})\.[A-Za-z0-9_-]+"/

/**
 * Pairs a database with a log, or makes sure that they are a pair: that its checkpoints stand in this log, and that
 * its keys are those that the log was written with, and that nothing is left of events that the log has lost. Fingerprints in the log, and so every idempotency key, derive from
 * a root that stands in the database only; with another one, nothing that was acknowledged would be known again.
 * A refused start changes nothing.
 * @param parts.setting names the database in messages.
 * @throws OtherEventLog, LogTooShort, KeysMissing; MasterKeyError when the master keys are not those of this database.
 */
export async function pairWithLog(parts: {
  readonly database: Database
  readonly engine: LogEngine
  readonly log: EventLog
  readonly registry: EventRegistry
  readonly masterKeys: MasterKeys
  readonly setting: 'DATABASE_URL' | 'DATA_DIR'
  /** Hears in words what the log has lost. */
  readonly report: (text: string) => void
}): Promise<void> {
  const { database, engine, log, registry, masterKeys, setting } = parts
  const pool = database.background
  await refuseOtherLog(pool, engine, log)
  const vault = new PostgresSecretVault(pool, masterKeys, systemClock)
  const commands = new CommandHandler(log, registry, systemClock)
  // the log before the root: a process that finds the event of another start finds its root, too
  const isEmpty = (await log.head()) === LOG_START
  if (!isEmpty && (await vault.get(FINGERPRINT_ROOT)) === null) {
    throw new KeysMissing(
      `${setting}: the event log holds events, and this database holds no keys of it: take the database that belongs ` +
        'to the log, or restore its keys from a backup',
    )
  }
  const keyCheckValue = isEmpty ? null : await recordedCheckValue(log, registry)
  const fingerprints = await openFingerprints(vault)
  const othersKeys = new KeysMissing(
    `${setting}: this database holds the keys of another event log: take the database that belongs to the log, or ` +
      'restore its keys from a backup',
  )
  if (keyCheckValue !== null && keyCheckValue !== fingerprints.keyCheckValue) throw othersKeys
  const subject = isEmpty ? null : await firstSubject(log)
  if (subject !== null && !(await new PersonalDataKeys(pool).read([subject])).has(subject)) {
    throw new KeysMissing(
      `${setting}: this database lacks the data keys of personal values in the event log: restore runtime.data_keys ` +
        'and runtime.secrets from one backup',
    )
  }
  await takeBackLostEvents({ database, log, report: parts.report })
  if (keyCheckValue === null) {
    // a log of an earlier release gets its check value now
    const commandId = `installation/${fingerprints.keyCheckValue}`
    const recorded = await commands.execute(
      installation,
      INSTALLATION_ID,
      { type: 'RecordKeyCheckValue', keyCheckValue: fingerprints.keyCheckValue },
      {
        actor: { type: 'system', id: 'installation' },
        tenantId: null,
        environment: null,
        correlationId: commandId,
        commandId,
      },
    )
    if (isRejection(recorded)) throw othersKeys
  }
  await rememberLog(pool, engine, log)
}

/**
 * The key check value of a log; null when it has none yet. It is never changed: what another program wrote behind it
 * does not count.
 * @throws ConfigError when what stands in its place cannot be read.
 */
async function recordedCheckValue(log: EventLog, registry: EventRegistry): Promise<string | null> {
  const [first] = await log.readStream(streamOf(installation, INSTALLATION_ID), { maxCount: 1 })
  if (!first) return null
  try {
    const { type, data } = registry.decode(first) as { type: string; data: unknown }
    return installation.evolve(installation.initialState, { type, data } as InstallationEvent).keyCheckValue
  } catch (error) {
    if (error instanceof UnreadableEvent)
      throw new ConfigError(`the event log cannot be used: ${error.message}`)
    throw error
  }
}

/** The data subject of the first sealed value near the beginning of a log; null when there is none. */
async function firstSubject(log: EventLog): Promise<string | null> {
  let after = LOG_START
  for (let looked = 0; looked < LOOKED_THROUGH; looked += PAGE) {
    const { events, checkpoint, atHead } = await log.readAll({ after, maxCount: PAGE })
    for (const event of events) {
      const subject = sealedSubject(event)
      if (subject !== null) return subject
    }
    if (atHead) return null
    after = checkpoint
  }
  return null
}

function sealedSubject({ data }: StoredEvent): string | null {
  return SEALED.exec(data)?.[1] ?? null
}
