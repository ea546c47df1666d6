// @module-tag once: it starts the embedded server itself
import { spawn } from 'node:child_process'
import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'

/** What the example payroll comes to under the example policy, by the book. */
const RED = [
  32, 65, 144, 169, 229, 243, 311, 365, 421, 438, 504, 562, 619, 662, 679, 748, 813, 817, 892, 914, 1001,
  1029, 1099, 1130, 1167,
]
const PREMIUM_CENTS = 19_689_003

/** Where the demo puts its files; nobody else's are in there. */
let temporary: string

beforeEach(async () => {
  temporary = await mkdtemp(join(tmpdir(), 'compstream-demo-test-'))
  // as root the embedded server runs as another user
  await chmod(temporary, 0o711)
})

afterEach(() => rm(temporary, { recursive: true, force: true }))

function run(args: readonly string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['scripts/demo.mjs', ...args], {
      env: { ...process.env, TMPDIR: temporary },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
    })
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, stdout, stderr }))
  })
}

// cli/cli reports payroll from a file, payments-intake sells what it sells
it('takes the example payroll to the premium, shows every red row, and leaves nothing behind', {
  tags: 'long',
}, async () => {
  const { code, stdout, stderr } = await run([])

  expect(stderr).toBe('')
  expect(code).toBe(0)
  const shown = [...stdout.matchAll(/^row +(\d+) /gm)].map(([, row]) => Number(row))
  expect([...new Set(shown)]).toEqual(RED)
  expect(stdout).toContain(`rows       1200: ${1200 - RED.length} green, ${RED.length} red`)
  expect(stdout).toContain(`"total_premium_cents":${PREMIUM_CENTS}`)
  expect(stdout).toContain('premium    $196,890.03')
  expect(stdout).toMatch(/^curl -s -X POST http:\/\/127\.0\.0\.1:\d+\/api\/v1\/payroll\/reports /m)
  expect(stdout).toMatch(/received {3}payment\.completed X-Webhook-Signature: [0-9a-f]{64}\n/)
  expect(stdout).toMatch(/signature verified \{.*"application":"10442".*"amount_paid_cents":412300/)
  expect(stdout).toMatch(/^policy {5}WC-[\w-]+: active$/m)
  expect(stdout).not.toContain('\x1b[')
  expect(await readdir(temporary)).toEqual([])
})

// of a script that nothing else uses
it('says what is wrong and cleans up when the payroll file is missing', { tags: 'long' }, async () => {
  const { code, stderr } = await run(['--file', 'examples/no-such-file.csv'])

  expect(code).toBe(1)
  expect(stderr).toContain('no-such-file.csv')
  expect(await readdir(temporary)).toEqual([])
})
