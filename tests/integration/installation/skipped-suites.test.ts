// @module-tag once: it runs the runner
// @module-tag long: it tests no part of the product
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, inject, test } from 'vitest'
import { temporaryDirectory } from '../../support/temporary-directory.ts'

const ROOT = join(import.meta.dirname, '../../..')

const directory = temporaryDirectory()

/** Runs the test runner where there are neither programs nor containers. @returns how it ended, and what it said, by line. */
async function run(args: readonly string[], given: Record<string, string> = {}) {
  const account = join(directory, 'account.json')
  const env = {
    PATH: '/nonexistent',
    DOCKER_HOST: 'unix:///nonexistent',
    TEST_DATABASE_URL: inject('postgresUrl'),
    TEST_ACCOUNT: account,
    ...given,
  }
  const [code, stdout] = await new Promise<[unknown, string]>((resolve) =>
    execFile(
      process.execPath,
      ['node_modules/vitest/vitest.mjs', 'run', ...args],
      { cwd: ROOT, env },
      (error, output) => resolve([error?.code ?? 0, output]),
    ),
  )
  const lines = stdout.trimEnd().split('\n')
  expect(await readFile(account.replace(/json$/, 'txt'), 'utf8')).toBe(`${lines.at(-1)}\n`)
  return { code, lines }
}

test.each<[string, string, Record<string, string>]>([
  ['no EventStoreDB server was found', 'eventstoredb-nats', {}],
  ['the given NATS server is shared with others', 'postgres-nats', { TEST_NATS_URL: 'nats://127.0.0.1:1' }],
])('where %s, every file of %s is skipped by name and counted', async (why, project, given) => {
  const { code, lines } = await run(
    ['--project', project, 'tests/end-to-end/http/rate-limits.test.ts'],
    given,
  )
  expect(code).toBe(1)
  expect(lines.slice(-4)).toEqual([
    'skipped:',
    `  1 on ${project}, whole files: ${why}`,
    '    end-to-end/http/rate-limits',
    '0 passed, 0 failed, 1 skipped',
  ])
})

test('what npm test leaves out is skipped by the name of its file and counted', async () => {
  const { code, lines } = await run([
    '--project',
    'database',
    'end-to-end/installation/demo',
    '-t',
    'nothing has this name',
  ])
  expect(code).toBe(0)
  const at = lines.indexOf('  1 on database: npm run test:all')
  expect(lines[at + 1]).toBe('    end-to-end/installation/demo')
  const files = lines.findIndex((line) => /^ {2}\d+ on database, whole files: npm run test:all$/.test(line))
  expect(lines[files + 1]?.split(', ')).toContain('integration/installation/skipped-suites')
  expect(lines.at(-1)).toMatch(/^0 passed, 0 failed, [1-9]\d* skipped$/)
})
