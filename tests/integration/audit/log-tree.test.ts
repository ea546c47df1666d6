import { randomBytes } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { checkProof, ProofFails } from '../../../application/audit/check-proof.ts'
import { readNote, signedNote, signerOf, verifierOf } from '../../../application/audit/checkpoint-note.ts'
import { leafOf } from '../../../application/audit/leaf.ts'
import {
  LogDiffers,
  LogTree,
  type LogTreeParts,
  TreeDamaged,
  UnknownSignature,
} from '../../../application/audit/log-tree.ts'
import { inclusionProof, leafHash } from '../../../application/audit/merkle.ts'
import { verifyLog } from '../../../application/audit/verification.ts'
import { chainHash, hashOf, splitHash, withHash } from '../../../application/commands/hash-chain.ts'
import { LOG_START } from '../../../application/ports/event-log.ts'
import { CheckpointFolder } from '../../../infrastructure/audit/checkpoint-folder.ts'
import { PostgresLogTreeStore } from '../../../infrastructure/audit/log-tree-store.ts'
import { MasterKeys } from '../../../infrastructure/crypto/master-keys.ts'
import { PostgresLogMemory } from '../../../infrastructure/installation/log-memory.ts'
import { PostgresSecretVault } from '../../../infrastructure/secrets/vault.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { isLogInEventStore } from '../../support/installation.ts'
import { newId } from '../../support/payroll.ts'
import { newWitness } from '../../support/witness.ts'
import { openWorkbench, type Workbench } from '../../support/workbench.ts'

describe('the tree over the log', () => {
  let database: TestDatabase
  let bench: Workbench
  let folder: string
  beforeEach(async () => {
    database = await createTestDatabase()
    bench = await openWorkbench(database.url)
    folder = await mkdtemp(join(tmpdir(), 'compstream-checkpoints-'))
  })
  afterEach(async () => {
    await bench.close()
    await database.drop()
    await rm(folder, { recursive: true })
  })

  const masterKeys = new MasterKeys([Buffer.alloc(32, 5)])
  const store = () => new PostgresLogTreeStore(bench.database)
  const tree = (parts: Partial<LogTreeParts> = {}) =>
    new LogTree({
      log: bench.log,
      store: store(),
      vault: new PostgresSecretVault(bench.database.pool, masterKeys, bench.clock),
      clock: bench.clock,
      copies: new CheckpointFolder(folder),
      witnesses: [],
      ...parts,
    })
  /** Events of streams of their own, ten in an append. */
  async function append(appends: number): Promise<void> {
    const events = Array.from({ length: 10 }, (_, n) => ({
      type: 'Filled',
      data: `{"n":${n}}`,
      metadata: '{}',
    }))
    await Promise.all(
      Array.from({ length: appends }, () => bench.log.append(`filler-${newId()}`, -1, events)),
    )
  }
  const lastEvent = async () => {
    const { events } = await bench.log.readAll({ after: (await bench.log.head()) - 1n, maxCount: 1 })
    return events[0]!
  }

  test('covers all events, and proves each of them to who has the key alone', async () => {
    await append(30)
    const checkpoint = (await tree().checkpoint())!
    const { events } = await bench.log.readAll({ after: LOG_START, maxCount: 1_000 })
    expect(checkpoint.size).toBe(events.length)
    expect(await tree().checkpoint()).toEqual(checkpoint)
    for (const index of [0, 255, 256, events.length - 1]) {
      const proof = (await tree().prove(events[index]!.eventId))!
      expect(proof.leaf_index).toBe(index)
      expect(checkProof(proof, [checkpoint.key])).toMatchObject({ leaf_index: index, size: events.length })
      expect(() => checkProof({ ...proof, leaf: `AAAA${proof.leaf}` }, [checkpoint.key])).toThrow(ProofFails)
    }
    expect(await tree().prove('00000000-0000-4000-8000-000000000000')).toBeNull()
  })

  test('proves many events at once, and none that is not what it was when it came into the tree', async () => {
    await append(30)
    const { size } = (await tree().checkpoint())!
    await append(1)
    const { events } = await bench.log.readAll({ after: LOG_START, maxCount: 1_000 })
    const shown = events.map((event) => ({
      position: String(event.position),
      event_id: event.eventId,
      leaf_hash: leafHash(leafOf(event)).toString('base64'),
    }))
    const proofs = (await tree().proofs(shown, size))!
    expect(proofs.slice(size)).toEqual(Array(10).fill(null))
    expect(proofs.slice(0, size).map((proof) => proof?.leaf_index)).toEqual([...Array(size).keys()])
    const path = await inclusionProof(256, size, tree().nodes())
    expect(proofs[256]!.path).toEqual(path.map((hash) => hash.toString('base64')))

    expect(await tree().proofs(shown.slice(0, 1), 1_000_000)).toBeNull()
    const { leaf_hash } = shown[1]!
    await expect(tree().proofs([{ ...shown[0]!, leaf_hash }], size)).rejects.toThrow(LogDiffers)
    const event_id = '00000000-0000-4000-8000-000000000000'
    await expect(tree().proofs([{ ...shown[0]!, event_id }], size)).rejects.toThrow(LogDiffers)
  })

  test('proves an event that large ones stand before', async () => {
    // a page of the log ends at 4 MiB, as stored
    const data = JSON.stringify({ random: randomBytes(360_000).toString('base64') })
    for (let n = 0; n < 10; n += 1) {
      await bench.log.append(`large-${newId()}`, -1, [{ type: 'Filled', data, metadata: '{}' }])
    }
    await append(1)
    const { eventId } = await lastEvent()
    const proof = (await tree().prove(eventId))!
    expect(checkProof(proof, [proof.key])).toMatchObject({ event_id: eventId })
  })

  test('goes on from where it was, whoever goes on, and each checkpoint is the beginning of the next', async () => {
    await append(27)
    const first = (await tree().checkpoint())!
    await append(40)
    const [one, other] = await Promise.all([tree().checkpoint(), tree().checkpoint()])
    expect(one!.size).toBe(other!.size)
    expect(readNote(one!.note)).toEqual(readNote(other!.note))
    const proof = (await tree().proveConsistency(first.size, one!.size))!
    expect(checkProof(proof, [first.key])).toMatchObject({ from: first.size, to: one!.size })
    expect(await tree().proveConsistency(one!.size, first.size)).toBeNull()
    expect(await tree().proveConsistency(null, one!.size + 1)).toBeNull()

    // a tree that is made anew is the same
    await store().clear(await store().end())
    await append(1)
    const third = (await tree().checkpoint())!
    expect(checkProof((await tree().proveConsistency(null, null))!, [third.key])).toMatchObject({
      to: third.size,
    })
  })

  test('is proven to go on from a size whose checkpoint is no longer kept', async () => {
    await append(1)
    const first = (await tree().checkpoint())!
    await append(1)
    const { size } = (await tree().checkpoint())!
    await bench.database.pool.query('DELETE FROM runtime.log_checkpoints WHERE size = $1', [first.size])
    const proof = (await tree().proveConsistency(first.size, size))!
    expect(proof.from).toBeNull()
    expect(() => checkProof(proof, [first.key])).toThrow(ProofFails)
    // who asks has kept it
    expect(checkProof({ ...proof, from: first.note }, [first.key])).toMatchObject({
      from: first.size,
      to: size,
    })
  })

  test('is proven by no checkpoint that is not as it was signed, or of another size', async () => {
    await append(1)
    const older = (await tree().checkpoint())!
    await append(1)
    const { size, note } = (await tree().checkpoint())!
    const { eventId } = (await bench.log.readAll({ after: LOG_START, maxCount: 1 })).events[0]!
    const root = Buffer.alloc(32, 1)
    const stranger = signerOf('compstream/x', Buffer.alloc(32, 9))
    for (const [forged, error] of [
      [signedNote({ ...readNote(note)!, root }, stranger), LogDiffers],
      [older.note, LogDiffers],
      [signedNote(readNote(note)!, stranger), UnknownSignature],
    ] as const) {
      await bench.database.pool.query('UPDATE runtime.log_checkpoints SET note = $2 WHERE size = $1', [
        size,
        forged,
      ])
      await expect(tree().prove(eventId, size)).rejects.toThrow(error)
      await expect(tree().proveConsistency(older.size, size)).rejects.toThrow(error)
      await expect(tree().proveConsistency(size, size)).rejects.toThrow(error)
      expect(await tree().prove(eventId, older.size)).toMatchObject({ checkpoint: older.note })
    }
  })

  test('is never made anew of what another process has made of it since', async () => {
    await append(1)
    const judged = await tree().grow()
    await append(1)
    const end = await tree().grow()
    await store().clear(judged)
    expect(await store().end()).toEqual(end)
    await store().clear(end)
    expect(await store().grow(end, { ...end, size: end.size + 1 }, [])).toBe(false)
    expect(await store().end()).toMatchObject({ size: 0 })
  })

  test('does not go on from tiles that are gone', async () => {
    await append(1)
    await tree().grow()
    await bench.database.pool.query('DELETE FROM runtime.log_tree_tiles')
    await append(1)
    await expect(tree().grow()).rejects.toThrow(TreeDamaged)
  })

  test('is signed while other processes sign what came since', async () => {
    await append(1)
    // whatever this one asks, another has signed more before it is answered
    const overtaken = new Proxy(store(), {
      get:
        (target, name: keyof PostgresLogTreeStore) =>
        async (...given: never[]) => {
          await append(1)
          await tree().checkpoint()
          return (target[name] as (...all: never[]) => Promise<unknown>).apply(target, given)
        },
    })
    const { size } = (await tree({ store: overtaken }).checkpoint())!
    const [newest] = await tree().checkpoints(1)
    expect(newest!.size).toBeGreaterThanOrEqual(size)
    expect(await readFile(join(folder, 'latest.checkpoint'), 'utf8')).toBe(newest!.note)
  })

  test('is not signed where the log no longer begins with what was signed before', async () => {
    await append(1)
    const { size } = (await tree().checkpoint())!
    await bench.database.pool.query(
      `UPDATE runtime.log_tree_tiles SET hashes = set_byte(hashes, 0, (get_byte(hashes, 0) + 1) % 256)`,
    )
    await append(1)
    await expect(tree().checkpoint()).rejects.toThrow(new LogDiffers(size))
    expect((await tree().checkpoints(10)).map((one) => one.size)).toEqual([size])
  })

  test('has copies of its newest checkpoint and of the last of each day in the folder', async () => {
    await append(1)
    const { note, key } = (await tree().checkpoint())!
    const day = new Date(bench.clock.now()).toISOString().slice(0, 10)
    const texts = await Promise.all(
      ['latest.checkpoint', `${day}.checkpoint`, 'verifier-key'].map((name) =>
        readFile(join(folder, name), 'utf8'),
      ),
    )
    expect(texts).toEqual([note, note, `${key}\n`])
  })

  test('has them there although it was signed while there was no folder, and has no older ones after newer', async () => {
    await append(1)
    const older = (await tree({ copies: null }).checkpoint())!
    const latest = () => readFile(join(folder, 'latest.checkpoint'), 'utf8')
    await tree().checkpoint()
    expect(await latest()).toBe(older.note)
    await append(1)
    const newer = (await tree().checkpoint())!
    await new CheckpointFolder(folder).keep(older)
    expect(await latest()).toBe(newer.note)
  })

  describe('that witnesses sign', () => {
    const witnesses = [newWitness('witness.example/1'), newWitness('witness.example/2')]
    const witnessed = (parts: Partial<LogTreeParts> = {}) =>
      tree({ witnesses: witnesses.map(({ key }) => verifierOf(key)!), ...parts })
    const verified = async () => {
      const memory = new PostgresLogMemory(bench.database.pool)
      return verifyLog({ log: bench.log, memory, tree: await witnessed().check() })
    }

    test('has the cosignatures of all who attach theirs at once, and finds one that its witness did not make', async () => {
      await append(1)
      const { size, note } = (await witnessed().checkpoint())!
      await Promise.all(witnesses.map((one) => witnessed().cosign(size, one.cosign(note, 1_775_001_600))))
      const signed = (await verified()).witnesses.map(({ witness, size }) => [witness, size])
      expect(signed.sort()).toEqual([
        ['witness.example/1', size],
        ['witness.example/2', size],
      ])
      expect(await witnessed().cosign(size + 1, witnesses[0]!.cosign(note, 1))).toBeNull()

      await bench.database.pool.query('UPDATE runtime.log_checkpoints SET note = $1', [
        `${note}${witnesses[0]!.cosign(note.replace(/\n/, 'x\n'), 1)}\n`,
      ])
      expect(await verified()).toMatchObject({ first_problem: { problem: 'unknown_signature' } })
    })

    test('has all of them in its copies, which processes write one after the other', async () => {
      await append(1)
      const { size, note } = (await witnessed().checkpoint())!
      const kept = new CheckpointFolder(folder)
      const isWaitedFor = async () => {
        const { rows } = await bench.database.pool.query(
          `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
        )
        return rows.length > 0
      }
      let begun = 0
      let atOnce = 0
      const keep: CheckpointFolder['keep'] = async (checkpoint) => {
        begun += 1
        atOnce += 1
        const isAlone = atOnce === 1
        // the first waits for the second to come
        if (begun === 1) await vi.waitUntil(async () => begun > 1 || (await isWaitedFor()), 10_000)
        await kept.keep(checkpoint)
        atOnce -= 1
        expect(isAlone).toBe(true)
      }
      const copies = Object.assign(Object.create(kept), { keep }) as CheckpointFolder
      const lines = witnesses.map((one) => one.cosign(note, 1_775_001_600))
      await Promise.all(lines.map((line) => witnessed({ copies }).cosign(size, line)))
      const texts = await Promise.all(
        (await readdir(folder))
          .filter((name) => name.endsWith('.checkpoint'))
          .map((name) => readFile(join(folder, name), 'utf8')),
      )
      expect(texts.map((text) => text.split('\n').slice(-3, -1).sort())).toEqual(texts.map(() => lines))

      // one that a witness did not make takes the place of none of them
      await bench.database.pool.query('UPDATE runtime.log_checkpoints SET note = $1', [
        texts[0]!.replace(/.{8}\n$/, 'AAAAAAAA\n'),
      ])
      await witnessed().checkpoint()
      expect(await readFile(join(folder, 'latest.checkpoint'), 'utf8')).toBe(texts[0])
    })

    test('keeps of each day the last, and the last that a witness signed', async () => {
      await append(1)
      const { note, key } = (await witnessed().checkpoint())!
      const cosigned = `${note}${witnesses[0]!.cosign(note, 1)}\n`
      const folderOf = new CheckpointFolder(folder)
      const day = Date.parse('2026-03-01T00:00:00Z')
      const made = [cosigned, cosigned, note, note].map((note, hour) => {
        return { size: 1_000_000 + hour, note, key, madeAt: day + hour * 3_600_000 }
      })
      for (const one of made) await store().addCheckpoint(one)
      await store().addCheckpoint({ size: 2_000_000, note, key, madeAt: day + 8 * 24 * 3_600_000 })
      const sizes = (await store().checkpoints(10)).map(({ size }) => size)
      expect(sizes.filter((size) => size >= 1_000_000)).toEqual([2_000_000, 1_000_003, 1_000_001])
      for (const one of made) await folderOf.keep(one)
      expect(await readFile(join(folder, '2026-03-01-cosigned.checkpoint'), 'utf8')).toBe(cosigned)
    })
  })

  describe.skipIf(isLogInEventStore)('finds, beside hash chains that were written anew as well,', () => {
    /** With full rights to the database: gives an event another text, and all hashes that follow from it. */
    async function forge(eventId: string): Promise<void> {
      const { rows } = await bench.database.pool.query(
        `SELECT stream, revision, type, metadata::text AS metadata FROM event_log.events WHERE event_id = $1`,
        [eventId],
      )
      const { stream, revision, type, metadata } = rows[0]
      const [before] = await bench.log.readStream(stream, { from: revision - 1, maxCount: 1 })
      const content = { eventId, type, data: '{"n":"forged"}', metadata: splitHash(metadata)!.metadata }
      const hash = chainHash(hashOf(before!.metadata), stream, revision, content)
      await asOwner('UPDATE event_log.events SET data = $2, metadata = $3 WHERE event_id = $1', [
        eventId,
        content.data,
        withHash(content.metadata, hash),
      ])
    }
    async function asOwner(statement: string, values: unknown[]): Promise<void> {
      const client = new pg.Client(database.url)
      await client.connect()
      try {
        await client.query('ALTER TABLE event_log.events DISABLE TRIGGER ALL')
        await client.query(statement, values)
      } finally {
        await client.end()
      }
    }
    const verified = async () =>
      verifyLog({
        log: bench.log,
        memory: new PostgresLogMemory(bench.database.pool),
        tree: await tree().check(),
      })

    test('nothing in a log that is whole', async () => {
      await append(3)
      await tree().checkpoint()
      await append(1)
      // one of them is the copy in the folder, which has the day's under another name
      expect(await verified()).toMatchObject({ verified: true, checkpoints: 3, first_problem: null })
    })

    test('an event that was changed', async () => {
      await append(30)
      const { eventId, stream } = await lastEvent()
      await tree().checkpoint()
      await append(1)
      await forge(eventId)
      expect((await verified()).first_problem).toMatchObject({
        problem: 'changed_event',
        event_id: eventId,
        stream,
      })
    })

    test('that, although the tree was made anew of it', async () => {
      await append(1)
      const { eventId } = await lastEvent()
      await tree().checkpoint()
      await forge(eventId)
      await store().clear(await store().end())
      await tree().grow()
      expect((await verified()).first_problem).toMatchObject({ problem: 'differs_from_checkpoint' })
    })

    test.each([
      ['were deleted with the tree', 'DELETE FROM runtime.log_checkpoints'],
      [
        'have another key',
        "UPDATE runtime.log_checkpoints SET key = 'compstream/x+29c8d1b2+AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'",
      ],
    ])('that by the copies, although the checkpoints %s, and signs nothing', async (_, statement) => {
      await append(1)
      const { eventId } = await lastEvent()
      const { note } = (await tree().checkpoint())!
      await forge(eventId)
      await store().clear(await store().end())
      await bench.database.pool.query(statement)
      expect((await verified()).first_problem).toMatchObject({ problem: 'differs_from_checkpoint' })
      await append(1)
      await expect(tree().checkpoint()).rejects.toThrow(LogDiffers)
      expect(await readFile(join(folder, 'latest.checkpoint'), 'utf8')).toBe(note)
    })

    test('a checkpoint that no key of the installation signed, and signs nothing after it', async () => {
      await append(1)
      const { note } = (await tree().checkpoint())!
      const signer = signerOf('compstream/x', Buffer.alloc(32, 9))
      const forged = signedNote(readNote(note)!, signer)
      await writeFile(join(folder, 'latest.checkpoint'), forged)
      expect((await verified()).first_problem).toMatchObject({ problem: 'unknown_signature' })
      await expect(tree().checkpoint()).rejects.toThrow(UnknownSignature)
    })

    test('that the newest events were cut off', async () => {
      await append(2)
      const { size } = (await tree().checkpoint())!
      await asOwner('DELETE FROM event_log.events WHERE position > $1', [size - 2])
      expect((await verified()).first_problem).toMatchObject({
        problem: 'missing_end',
        position: String(size - 2),
      })
    })

    test('a later checkpoint in the folder, and does not sign over it, as after a restore of an older log', async () => {
      await append(1)
      const { size } = (await tree().checkpoint())!
      await append(1)
      const later = (await tree().checkpoint())!
      await asOwner('DELETE FROM event_log.events WHERE position > $1', [size])
      await bench.database.pool.query('DELETE FROM runtime.log_checkpoints WHERE size > $1', [size])
      for (const _ of ['shorter', 'grown again']) {
        await expect(tree().checkpoint()).rejects.toThrow(new LogDiffers(later.size))
        await append(2)
      }
      expect(await readFile(join(folder, 'latest.checkpoint'), 'utf8')).toBe(later.note)
    })

    test('that not the log was changed, but the tree', async () => {
      await append(1)
      await tree().checkpoint()
      await bench.database.pool.query(
        'UPDATE runtime.log_tree_tiles SET hashes = set_byte(hashes, 0, (get_byte(hashes, 0) + 1) % 256)',
      )
      expect((await verified()).first_problem).toMatchObject({ problem: 'damaged_tree', position: '1' })
    })
  })
})
