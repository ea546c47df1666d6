import type { File, Suite } from '@vitest/runner'
import { TestRunner } from 'vitest'
import { installationName, whyNot } from './installation.ts'
import { isLeftOut } from './long-suites.ts'

declare module 'vitest' {
  interface TaskMeta {
    /** Why the installation cannot be had, or the command that runs it. */
    skippedBecause?: string
  }
}

/**
 * Skips tests by name: all where the installation's servers are missing, else those that `npm test` leaves out. Hooks of
 * suites without a test that runs are not run either.
 */
export default class InstallationRunner extends TestRunner {
  async onCollected(files: readonly File[]): Promise<void> {
    const missing = await whyNot()
    for (const file of files) {
      skipIn(file, [], (names) => {
        if (missing !== null) return missing
        return isLeftOut(installationName, file.filepath, names) ? 'npm run test:all' : null
      })
    }
  }
}

/** @param why why the test of that name, its suites' names before its own, is skipped. @returns whether no test is left. */
function skipIn(
  suite: Suite,
  names: readonly string[],
  why: (names: readonly string[]) => string | null,
): boolean {
  let isEmpty = true
  for (const task of suite.tasks) {
    const path = [...names, task.name]
    if (task.type === 'suite') {
      isEmpty = skipIn(task, path, why) && isEmpty
      continue
    }
    const because = why(path)
    if (because !== null) {
      task.mode = 'skip'
      task.result = { state: 'skip' }
      task.meta.skippedBecause = because
    }
    isEmpty &&= task.mode === 'skip'
  }
  if (isEmpty) for (const hooks of Object.values(TestRunner.getSuiteHooks(suite))) hooks.length = 0
  return isEmpty
}
