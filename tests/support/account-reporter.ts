import { writeFile } from 'node:fs/promises'
import { relative, resolve } from 'node:path'
import { JsonReporter, type TestCase, type TestModule, type TestSuite } from 'vitest/node'

const ROOT = resolve(import.meta.dirname, '../..')

/** Files that a project does not load. */
export interface LeftOut {
  readonly project: string
  /** What is missing, or the command that runs them. */
  readonly why: string
  /** From the root of the repository. */
  readonly files: readonly string[]
}

/**
 * Writes the account of a run, and ends it with what it left out: how many tests of which files, why, and in which
 * project. The last line is `N passed, N failed, N skipped`, which is written beside the account, too. A file that was
 * not loaded counts as one.
 */
export default class AccountReporter extends JsonReporter {
  readonly #countFile: string
  readonly #leftOut: readonly LeftOut[]

  /** @param options.outputFile gets the account; the count stands beside it, in a file that ends in `.txt`. */
  constructor(options: { outputFile: string; leftOut: readonly LeftOut[] }) {
    super(options)
    this.#countFile = resolve(ROOT, options.outputFile.replace(/\.json$/, '.txt'))
    this.#leftOut = options.leftOut
  }

  override async onTestRunEnd(modules: readonly TestModule[]): Promise<void> {
    await super.onTestRunEnd(modules)
    const errors = this.ctx.state.getUnhandledErrors()
    const count = { passed: 0, failed: 0, skipped: 0, pending: 0 }
    /** How many tests were skipped, by project and reason, then by file. */
    const skipped = new Map<string, Map<string, number>>()
    const skip = (group: string, path: string) => {
      count.skipped += 1
      const files = skipped.get(group) ?? new Map<string, number>()
      const file = relative(`${ROOT}/tests`, path).replace(/\.test\.ts$/, '')
      skipped.set(group, files.set(file, (files.get(file) ?? 0) + 1))
    }
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const { state } = test.result()
        if (state === 'skipped') skip(`${module.project.name}: ${reasonOf(test)}`, module.moduleId)
        else count[state] += 1
      }
    }
    for (const { project, why, files } of this.#leftOut) {
      if (!this.ctx.matchesProjectFilter(project)) continue
      for (const file of files) skip(`${project}, whole files: ${why}`, resolve(ROOT, file))
    }
    // what failed outside of tests: a file that could not be loaded, a hook, an error that nobody waited for
    if (count.failed === 0 && (errors.length > 0 || modules.some((module) => module.state() === 'failed'))) {
      count.failed = 1
    }
    const lines = [...skipped].map(([group, files]) => {
      const total = [...files.values()].reduce((sum, tests) => sum + tests, 0)
      const each = [...files].map(([file, tests]) => (tests === 1 ? file : `${file} ${tests}`))
      return `  ${total} on ${group}\n    ${each.join(', ')}\n`
    })
    const last = `${count.passed} passed, ${count.failed + count.pending} failed, ${count.skipped} skipped\n`
    process.stdout.write(`${lines.length > 0 ? `\nskipped:\n${lines.join('')}` : '\n'}${last}`)
    await writeFile(this.#countFile, last)
  }
}

/** The command that runs what its tags leave out; a suite or test with a condition of its own says it in its name. */
function reasonOf(test: TestCase): string {
  const { tags = [] } = test.options
  const isFiltered = test.project.config.tagsFilter?.some((one) =>
    one.startsWith('!') ? tags.includes(one.slice(1)) : !tags.includes(one),
  )
  if (isFiltered) return 'npm run test:all'
  let outermost: TestCase | TestSuite = test
  while (outermost.parent.type === 'suite') outermost = outermost.parent
  return outermost.name
}
