import { writeFile } from 'node:fs/promises'
import { relative, resolve } from 'node:path'
import { JsonReporter, type TestCase, type TestModule, type TestSuite } from 'vitest/node'

const ROOT = resolve(import.meta.dirname, '../..')

/**
 * Writes the account of a run, and ends it with what it left out: how many tests of which files, why, and on which
 * installation. The last line is `N passed, N failed, N skipped`, which is written beside the account, too.
 */
export default class AccountReporter extends JsonReporter {
  readonly #countFile: string

  /** @param options.outputFile gets the account; the count stands beside it, in a file that ends in `.txt`. */
  constructor(options: { outputFile: string }) {
    super(options)
    this.#countFile = resolve(ROOT, options.outputFile.replace(/\.json$/, '.txt'))
  }

  override async onTestRunEnd(modules: readonly TestModule[]): Promise<void> {
    await super.onTestRunEnd(modules)
    const errors = modules[0]?.project.vitest.state.getUnhandledErrors() ?? []
    const count = { passed: 0, failed: 0, skipped: 0, pending: 0 }
    /** How many tests were skipped, by project and reason, then by file. */
    const skipped = new Map<string, Map<string, number>>()
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const { state } = test.result()
        count[state] += 1
        if (state !== 'skipped') continue
        const group = `${module.project.name}: ${reasonOf(test)}`
        const files = skipped.get(group) ?? new Map<string, number>()
        const file = relative(`${ROOT}/tests`, module.moduleId).replace(/\.test\.ts$/, '')
        skipped.set(group, files.set(file, (files.get(file) ?? 0) + 1))
      }
    }
    // what failed outside of tests: a file that could not be loaded, a hook, an error that nobody waited for
    if (count.failed === 0 && (errors.length > 0 || modules.some((module) => module.state() === 'failed'))) {
      count.failed = 1
    }
    const lines = [...skipped].map(([group, files]) => {
      const total = [...files.values()].reduce((sum, tests) => sum + tests, 0)
      return `  ${total} on ${group}\n    ${[...files].map(([file, tests]) => `${file} ${tests}`).join(', ')}\n`
    })
    const last = `${count.passed} passed, ${count.failed + count.pending} failed, ${count.skipped} skipped\n`
    process.stdout.write(`${lines.length > 0 ? `\nskipped:\n${lines.join('')}` : '\n'}${last}`)
    await writeFile(this.#countFile, last)
  }
}

/** A suite or test with a condition of its own says it in its name. */
function reasonOf(test: TestCase): string {
  let named: TestCase | TestSuite = test
  while (named.parent.type === 'suite') named = named.parent
  return test.meta().skippedBecause ?? named.name
}
