// @module-tag once: it starts containers
import { execFile, spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sharedService } from '../../support/service.ts'

const run = promisify(execFile)
const ROOT = resolve(import.meta.dirname, '../../..')
const IMAGE = 'compstream-under-test'

describe.skipIf(spawnSync('docker', ['info']).status !== 0)('the image (needs Docker)', () => {
  beforeAll(() => run('docker', ['build', '--tag', IMAGE, ROOT], { maxBuffer: 2 ** 26 }), 900_000)
  afterAll(() => run('docker', ['image', 'rm', '--force', IMAGE]))

  test('has the program and its command line, and asks for what it needs', async () => {
    const { stdout } = await run('docker', ['run', '--rm', IMAGE, 'compstream', '--help'])
    expect(stdout).toContain('payroll')
    const refused = await run('docker', ['run', '--rm', IMAGE]).catch((error) => error)
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('DATABASE_URL')])
  })
})

test('its health check says whether the service lives', async () => {
  const check = (url: string) =>
    run(process.execPath, ['deploy/healthcheck.mjs'], { env: { OPS_PORT: new URL(url).port } }).then(
      () => 'healthy',
      () => 'unhealthy',
    )
  expect(await check((await sharedService()).opsUrl)).toBe('healthy')
  // the port of no service
  expect(await check('http://127.0.0.1:1')).toBe('unhealthy')
})
