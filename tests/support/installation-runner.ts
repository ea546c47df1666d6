import type { File, Task } from '@vitest/runner'
import { TestRunner } from 'vitest'
import { installationName, whyNot } from './installation.ts'

declare module 'vitest' {
  interface TaskMeta {
    /** Installation and why it cannot be had. */
    skippedBecause?: string
  }
}

/** Skips every test by name where the installation's servers are missing; no hook of the file is run then. */
export default class InstallationRunner extends TestRunner {
  async onCollected(files: readonly File[]): Promise<void> {
    const why = await whyNot()
    if (why !== null) for (const file of files) skip(file, `${installationName}: ${why}`)
  }
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
