import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'

const run = promisify(execFile)
const ROOT = join(import.meta.dirname, '../..')
/** Its hooks need every server of the installation. */
const INTEGRATION = 'tests/integration/command-handling.test.ts'
const END_TO_END = 'tests/end-to-end/mcp-rate-limit.test.ts'

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'compstream-skipped-'))
})
afterAll(() => rm(directory, { recursive: true, force: true }))

test.each<[string, string, string, Record<string, string>]>([
  ['no EventStoreDB server was found', 'eventstoredb-nats', INTEGRATION, {}],
  [
    'the given NATS server is shared with others',
    'postgres-nats',
    END_TO_END,
    { TEST_NATS_URL: 'nats://127.0.0.1:1' },
  ],
])('where %s, every test of %s is skipped by name and counted', async (why, project, file, given) => {
  const account = join(directory, `${project}-${Object.keys(given).length}.json`)
  const env = {
    // neither programs nor containers
    PATH: '/nonexistent',
    DOCKER_HOST: 'unix:///nonexistent',
    TEST_DATABASE_URL: inject('postgresUrl'),
    TEST_ACCOUNT: account,
    ...given,
  }
  const vitest = 'node_modules/vitest/vitest.mjs'
  const { stdout } = await run(process.execPath, [vitest, 'run', '--project', project, file], {
    cwd: ROOT,
    env,
  })
  const { testResults } = JSON.parse(await readFile(account, 'utf8')) as {
    testResults: { assertionResults: { fullName: string; status: string }[] }[]
  }
  const tests = testResults.flatMap(({ assertionResults }) => assertionResults)
  expect(tests.length).toBeGreaterThan(1)
  for (const { fullName, status } of tests) {
    expect([fullName, status]).toEqual([expect.stringMatching(/\w/), 'skipped'])
  }
  const count = `0 passed, 0 failed, ${tests.length} skipped`
  const name = file.replace(/^tests\/|\.test\.ts$/g, '')
  expect(stdout.trimEnd().split('\n').slice(-4)).toEqual([
    'skipped:',
    `  ${tests.length} on ${project}: ${why}`,
    `    ${name} ${tests.length}`,
    count,
  ])
  expect(await readFile(account.replace(/json$/, 'txt'), 'utf8')).toBe(`${count}\n`)
})
