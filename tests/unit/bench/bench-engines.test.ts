import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { startNats } from '../../../bench/engines.ts'

test.each([
  { end: 'kill -KILL $$', told: 'was ended by SIGKILL' },
  { end: 'exit 3', told: 'ended with code 3' },
])('an engine of the bench that dies as it starts is not waited for: $end', async ({ end, told }) => {
  const folder = await mkdtemp(join(tmpdir(), 'compstream-bench-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'nats-server'), `#!/bin/sh\n${end}\n`, { mode: 0o755 })
  vi.stubEnv('TEST_NATS_URL', '')
  vi.stubEnv('PATH', folder)
  onTestFinished(() => void vi.unstubAllEnvs())
  await expect(startNats()).rejects.toThrow(told)
})
