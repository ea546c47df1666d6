import { readdirSync, readFileSync, statfsSync } from 'node:fs'
import { join, normalize, resolve } from 'node:path'
import { defineConfig } from 'vitest/config'
import type { LeftOut } from './tests/support/account-reporter.ts'
import { type InstallationName, whyNot } from './tests/support/installation.ts'

/** A file system in memory, and what it has to have free to hold what tests store, in bytes. */
const MEMORY = '/dev/shm'
const ROOM = 6 * 1024 ** 3

/** Files that are named on the command line: each runs whole. */
const named = process.argv.slice(2).filter((one) => one.endsWith('.test.ts'))
const isEverythingRun = Boolean(process.env.TEST_LONG) || named.length > 0

// clusters of thousands of files come and go with services: a disk takes longer to make and forget them
if (isRoomInMemory()) process.env.TMPDIR ??= MEMORY

/** Limits for what hangs, not expectations: a busy machine may take many times as long as a quiet one. */
const shared = {
  pool: 'forks',
  testTimeout: 600_000,
  hookTimeout: 600_000,
  expect: { poll: { timeout: 240_000, interval: 20 } },
  // a worker loads a module once, not once for each file
  isolate: false,
  tagsFilter: isEverythingRun ? [] : ['!long'],
} as const
const onServers = {
  ...shared,
  globalSetup: ['tests/support/global-setup.ts'],
  setupFiles: ['tests/support/after-each-file.ts'],
}

/** What the run came to. */
const ACCOUNT = process.env.TEST_ACCOUNT ?? 'node_modules/.cache/test-results.json'

/** Whether programs may run there as well. */
function isRoomInMemory(): boolean {
  try {
    const { bavail, bsize } = statfsSync(MEMORY)
    const isRoomy = Math.min(bavail * bsize, process.availableMemory()) > ROOM
    return (
      isRoomy &&
      new RegExp(`^\\S+ ${MEMORY} tmpfs (?!\\S*noexec)`, 'm').test(readFileSync('/proc/mounts', 'utf8'))
    )
  } catch {
    return false
  }
}

/** All test files on servers, with their text. */
const files = ['contract', 'integration', 'end-to-end', 'chaos'].flatMap((tier) =>
  readdirSync(join(import.meta.dirname, 'tests', tier), { encoding: 'utf8', recursive: true })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => `tests/${tier}/${name}`)
    .map((path) => ({ path, text: readFileSync(join(import.meta.dirname, path), 'utf8') })),
)
type TestFile = (typeof files)[number]

/** Whether a file says at its beginning what all its tests are. */
function isAll({ text }: TestFile, tag: string): boolean {
  return text.includes(`// @module-tag ${tag}`)
}
/** Whether a file has tests whose subject depends on the engine of the log. */
function isOfLog(file: TestFile): boolean {
  return isAll(file, 'each-log') || file.text.includes("tags: 'each-log'")
}
function isIn({ path }: TestFile, tier: string): boolean {
  return path.startsWith(`tests/${tier}/`)
}

const leftOut: LeftOut[] = []

/** A project on an installation. @param all its files. @param short whether `npm test` loads one of them. */
async function projectOn(
  installation: InstallationName,
  name: string,
  all: readonly TestFile[],
  short: (file: TestFile) => boolean,
) {
  const missing = await whyNot(installation)
  const include = missing === null ? all.filter((file) => isEverythingRun || short(file)) : []
  leftOut.push({
    project: name,
    why: missing ?? 'npm run test:all',
    files: all
      .filter((file) => !include.includes(file))
      .map(({ path }) => path)
      .filter((path) => named.length === 0 || named.some((one) => resolve(path).includes(normalize(one)))),
  })
  return {
    ...onServers,
    name,
    env: { TEST_INSTALLATION: installation },
    include: include.map(({ path }) => path),
  }
}

const database = await projectOn(
  'embedded',
  'database',
  files.filter((file) => !isAll(file, 'alone')),
  (file) => !isAll(file, 'long'),
)
const besides = files.filter((file) => !isAll(file, 'once') && !isAll(file, 'alone'))
/** One process with all that the others consist of: it has nothing of its own that a short run would look at. */
const postgresAndNats = await projectOn(
  'postgres-nats',
  'postgres-nats',
  besides.filter((file) => isIn(file, 'end-to-end')),
  () => false,
)
const eventStoreAndNats = await projectOn(
  'eventstoredb-nats',
  'eventstoredb-nats',
  besides.filter(
    (file) =>
      !isAll(file, 'postgres-log') &&
      (isIn(file, 'end-to-end') || isIn(file, 'integration') || isOfLog(file)),
  ),
  (file) => isOfLog(file) && !isAll(file, 'long'),
)
/** One after another, once all others have ended. */
const alone = await Promise.all(
  (['embedded', 'postgres-nats', 'eventstoredb-nats'] as const).map(async (installation) => ({
    ...(await projectOn(
      installation,
      `${installation}-alone`,
      files.filter((file) => isAll(file, 'alone')),
      () => false,
    )),
    maxWorkers: 1,
    sequence: { groupOrder: 1 },
  })),
)

/**
 * `unit` needs no server. `database` is everything else on the default installation; the others are the same suites on
 * the other installations (tests/support/installation.ts), as far as these make a difference to them.
 */
export default defineConfig({
  test: {
    // each is written where it holds, with its reason
    tags: [
      { name: 'long', description: 'left out by npm test: another test has the rule in a shorter form' },
      {
        name: 'each-log',
        description: 'the engine of the log matters: npm test runs it on EventStoreDB, too',
      },
      { name: 'once', description: 'runs on the default installation alone' },
      { name: 'postgres-log', description: 'runs where the log is in PostgreSQL' },
      { name: 'alone', description: 'compares times: nothing else may want the machine' },
    ],
    // on two cores: suites of outages, leases and freezes mostly wait
    maxWorkers: 4,
    reporters: ['default', ['./tests/support/account-reporter.ts', { outputFile: ACCOUNT, leftOut }]],
    // EventStoreDB's client leaves a promise of its own without a handler when no node of a cluster answers, and rejects
    // the call as well, which the tests do see; the service logs it (interfaces/main.ts)
    onUnhandledError: ({ message, stack }) =>
      !(message.startsWith('Failed to discover after') && stack?.includes('@eventstore/db-client')),
    projects: [
      { test: { ...shared, name: 'unit', include: ['tests/{unit,properties}/**/*.test.ts'] } },
      { test: database },
      { test: postgresAndNats },
      {
        test: {
          ...eventStoreAndNats,
          tagsFilter: isEverythingRun ? [] : ['!long', 'each-log'],
        },
      },
      ...alone.map((test) => ({ test })),
    ],
  },
})
