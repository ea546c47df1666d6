import type { File, Task } from '@vitest/runner'
import { TestRunner } from 'vitest'
import { installationName, whyNot } from './installation.ts'
import { leftOut } from './long-suites.ts'

declare module 'vitest' {
  interface TaskMeta {
    /** Installation and why it cannot be had, or that the suite takes long. */
    skippedBecause?: string
  }
}

/**
 * Skips tests by name, and runs no hook of theirs: all where the installation's servers are missing, else those that
 * take long.
 */
export default class InstallationRunner extends TestRunner {
  async onCollected(files: readonly File[]): Promise<void> {
    const why = await whyNot()
    for (const file of files) {
      if (why !== null) skip(file, `${installationName}: ${why}`)
      else skipLong(file)
    }
  }
}

function skipLong(file: File): void {
  const suites = leftOut(installationName, file.filepath)
  if (suites === null) return
  const why = 'takes long: npm run test:all'
  if (suites === undefined) skip(file, why)
  else for (const suite of suitesOf(file)) if (suites.test(suite.name)) skip(suite, why)
}

function suitesOf(task: Task): Task[] {
  return task.type === 'test' ? [] : [task, ...task.tasks.flatMap(suitesOf)]
}

function skip(task: Task, why: string): void {
  if (task.type === 'test') {
    task.mode = 'skip'
    task.result = { state: 'skip' }
    task.meta.skippedBecause = why
    return
  }
  for (const hooks of Object.values(TestRunner.getSuiteHooks(task))) hooks.length = 0
  for (const one of task.tasks) skip(one, why)
}
