// Prints what the last `npm test` came to: what was skipped by file and reason, and as the last line
// N passed, N failed, N skipped.
// Ends with 1 when something failed, nothing ran, or the run left no account (see vitest.config.ts).
// Takes the exit code of the run: errors outside of any test show nowhere else.

import { readFile } from 'node:fs/promises'
import { relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const account = resolve(root, process.env.TEST_ACCOUNT ?? 'node_modules/.cache/test-results.json')
const counts = { passed: 0, failed: 0, skipped: 0 }
/** How many tests were skipped, by file and reason. */
const skipped = new Map()
try {
  const { testResults } = JSON.parse(await readFile(account, 'utf8'))
  for (const file of testResults) {
    for (const { status, meta, ancestorTitles } of file.assertionResults) {
      if (status === 'passed') counts.passed += 1
      else if (status === 'failed') counts.failed += 1
      else {
        counts.skipped += 1
        // a test of a suite with a condition of its own has the reason in its name
        const why = meta?.skippedBecause ?? (ancestorTitles.filter(Boolean).at(0) || 'a test of its own')
        const line = `${relative(root, file.name)} (${why})`
        skipped.set(line, (skipped.get(line) ?? 0) + 1)
      }
    }
    // a file that could not be loaded or set up has failed, although none of its tests did
    if (file.status === 'failed' && !file.assertionResults.some(({ status }) => status === 'failed')) {
      counts.failed += 1
    }
  }
  if (Number(process.argv[2] ?? 0) !== 0 && counts.failed === 0) counts.failed = 1
} catch (error) {
  process.stderr.write(`the test run left no account: ${error.message}\n`)
  counts.failed = Math.max(counts.failed, 1)
}
if (skipped.size > 0) process.stdout.write('skipped:\n')
for (const [line, count] of skipped) process.stdout.write(`  ${count} of ${line}\n`)
process.stdout.write(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`)
process.exitCode = counts.failed > 0 || counts.passed === 0 ? 1 : 0
