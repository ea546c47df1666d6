// Prints what the last `npm test` came to as one line: N passed, N failed, N skipped.
// Ends with 1 when something failed, nothing ran, or the run left no account (see vitest.config.ts).
// Takes the exit code of the run: errors outside of any test show nowhere else.

import { readFile } from 'node:fs/promises'

const counts = { passed: 0, failed: 0, skipped: 0 }
try {
  const results = new URL('../node_modules/.cache/test-results.json', import.meta.url)
  const { testResults } = JSON.parse(await readFile(results, 'utf8'))
  for (const file of testResults) {
    for (const { status } of file.assertionResults) {
      if (status === 'passed') counts.passed += 1
      else if (status === 'failed') counts.failed += 1
      else counts.skipped += 1
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
process.stdout.write(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`)
process.exitCode = counts.failed > 0 || counts.passed === 0 ? 1 : 0
