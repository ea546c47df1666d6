// @module-tag once: it has the log that it needs itself
// @module-tag long: copy-events keeps every byte, pairing and log-pairing refuse what does not belong together
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cli } from '../../support/cli.ts'
import { report } from '../../support/core.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { continueStory, expectStory, makeStory, type Story, storedLog } from '../../support/payroll-story.ts'
import { postgresToolsFit } from '../../support/postgres-tools.ts'
import { type RunningService, startService } from '../../support/service.ts'
import { copyTables, withClient, writeTables } from '../../support/table-copies.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'
import { underLoad } from '../../support/under-load.ts'

const run = promisify(execFile)
const MASTER_KEY = randomBytes(32).toString('base64')

const directory = temporaryDirectory()

/** A way to keep a database and to bring it back into an empty one. */
interface Method {
  /** Backs up a database in use. @returns what brings it back into an empty one. */
  backUp(url: string): Promise<(url: string) => Promise<void>>
}

const TOOLS: Method = {
  async backUp(url) {
    const file = join(directory, 'compstream.dump')
    await run('pg_dump', ['--format=custom', `--file=${file}`, url])
    return async (target) => {
      await run('pg_restore', ['--no-owner', '--no-acl', '--exit-on-error', `--dbname=${target}`, file])
    }
  },
}

/** All that cannot be made again; everything else is made from it. */
const KEYS = ['runtime.data_keys', 'runtime.erasures', 'runtime.secrets']
const IRREPLACEABLE = ['event_log.events', ...KEYS]

const ROWS: Method = {
  async backUp(url) {
    const copies = await copyTables(url, IRREPLACEABLE)
    return async (target) => {
      // makes the tables, without the keys and the first event that a start makes
      expect((await cli(['events', 'verify', '--at', target])).code).toBe(0)
      await withClient(target, (client) => client.query('TRUNCATE runtime.erasures'))
      await writeTables(target, copies)
    }
  },
}

function given(url: string, masterKey = MASTER_KEY): Promise<RunningService> {
  return startService({ env: { DATABASE_URL: url, MASTER_KEY: masterKey } })
}

describe.each([
  ['pg_dump and pg_restore', TOOLS, await postgresToolsFit()],
  ['the log and the keys alone', ROWS, true],
] as const)('a database backed up under load, by %s', (_name, method, possible) => {
  let original: TestDatabase
  let copy: TestDatabase
  let service: RunningService | undefined
  let restored: RunningService | undefined
  let story: Story

  beforeAll(async () => {
    if (!possible) return
    original = await createTestDatabase({ migrate: false })
    copy = await createTestDatabase({ migrate: false })
    service = await given(original.url)
    story = await makeStory(service)
  })
  afterAll(async () => {
    await service?.stop()
    await restored?.stop()
    await original?.drop()
    await copy?.drop()
  })

  test.skipIf(!possible)('serves what it served, and goes on', async () => {
    const send = async () => expect((await report(service!, story.tenant)).status).toBe(202)
    const restore = await underLoad(3, send, async (more) => {
      await more(5)
      const backup = await method.backUp(original.url)
      await more(5)
      return backup
    })
    const whole = await storedLog(service!)

    await restore(copy.url)
    restored = await given(copy.url)
    const log = await storedLog(restored)
    expect(log.length).toBeGreaterThan(story.log.length)
    expect(log.length).toBeLessThan(whole.length)
    expect(log).toEqual(whole.slice(0, log.length))
    await expectStory(restored, story)
    await continueStory(restored, story)
  })

  test.skipIf(!possible)('is refused with another master key, before anything is served', async () => {
    await restored!.stop()
    const before = await withClient(copy.url, (client) =>
      client.query('SELECT count(*) FROM event_log.events'),
    )
    const other = randomBytes(32).toString('base64')
    const refusal = await given(copy.url, other).then(
      () => 'it started',
      (error: Error) => error.message,
    )
    expect(refusal).toMatch(/^The service ended with code 1:\n/)
    expect(refusal).toContain('MASTER_KEY does not contain the key')
    const after = await withClient(copy.url, (client) =>
      client.query('SELECT count(*) FROM event_log.events'),
    )
    expect(after.rows).toEqual(before.rows)
    restored = await given(copy.url, `${other},${MASTER_KEY}`)
    await expectStory(restored, story)
  })
})

describe('a data directory copied while the service is stopped', () => {
  let service: RunningService | undefined
  afterAll(async () => {
    await service?.stop()
  })

  test('serves what it served, and goes on', async () => {
    const dataDir = join(directory, 'data')
    service = await startService({ dataDir })
    const story = await makeStory(service)
    expect(await service.end()).toBe(0)
    const copies = ['first', 'second'].map((name) => join(directory, name))
    for (const copy of copies) await run('cp', ['-a', dataDir, copy])
    await rm(dataDir, { recursive: true })

    service = await startService({ dataDir: copies[0]! })
    await expectStory(service, story)
    await continueStory(service, story)
    expect(await service.end()).toBe(0)
    service = undefined

    await rm(join(copies[1]!, 'master-key'))
    await expect(startService({ dataDir: copies[1]! })).rejects.toThrow('master-key is missing')
  })
})
