import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'

/** Makes a directory for the file or the suite at whose top it is called, which goes after all its other hooks. */
export function temporaryDirectory(): string {
  const path = mkdtempSync(join(tmpdir(), 'compstream-of-tests-'))
  afterAll(() => rm(path, { recursive: true, force: true, maxRetries: 5 }))
  return path
}
