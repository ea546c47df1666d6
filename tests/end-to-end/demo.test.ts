// @module-tag once: it starts the embedded server itself
import { spawn } from 'node:child_process'
import { chmod, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'csv-parse/sync'
import { afterEach, beforeEach, expect, it } from 'vitest'

interface Terms {
  readonly class_codes: readonly string[]
  readonly states: readonly string[]
  readonly rates: readonly { class_code: string; state: string; rate_per_100: string }[]
}

type Line = Record<'class_code' | 'state' | 'gross_wages' | 'hours_worked' | 'rate' | 'overtime', string> &
  Record<'check_date' | 'pay_period_start' | 'pay_period_end', string>

const NUMBER = /^-?\d+(?:\.\d{1,2})?$/

/** Hundredths of a decimal with at most two places. */
function hundredths(text: string): bigint {
  const [whole = '', fraction = ''] = text.split('.')
  return BigInt(whole + fraction.padEnd(2, '0'))
}

function isRed(line: Line, terms: Terms): boolean {
  const amounts = [line.gross_wages, line.hours_worked, line.rate, line.overtime].filter(
    (text) => text !== '',
  )
  const dates = [line.check_date, line.pay_period_start, line.pay_period_end].filter((text) => text !== '')
  return (
    !terms.class_codes.includes(line.class_code) ||
    !terms.states.includes(line.state) ||
    amounts.some((text) => !NUMBER.test(text) || text.startsWith('-')) ||
    dates.some(
      (text) => Number.isNaN(Date.parse(text)) || new Date(text).toISOString().slice(0, 10) !== text,
    ) ||
    (line.gross_wages === '' && (line.hours_worked === '' || line.rate === ''))
  )
}

/** Premium in cents by the book: wage less a third of the overtime outside NV and PA, to the cent, times the rate, to the cent. */
function premiumCents(line: Line, terms: Terms): bigint {
  const wage =
    line.gross_wages === ''
      ? hundredths(line.hours_worked) * hundredths(line.rate)
      : hundredths(line.gross_wages) * 100n
  const excluded = line.overtime === '' || ['NV', 'PA'].includes(line.state) ? 0n : hundredths(line.overtime)
  // three times the auditable wage in ten-thousandths; 300 of them are a cent
  const auditable = (3n * wage - 100n * excluded + 150n) / 300n
  const rate = terms.rates.find((one) => one.class_code === line.class_code && one.state === line.state)!
  return (auditable * hundredths(rate.rate_per_100) + 5_000n) / 10_000n
}

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

// readme-tour runs it, too, and holds its sums
it('takes the example payroll to the premium, shows every red row, and leaves nothing behind', {
  tags: 'long',
}, async () => {
  const terms = JSON.parse(await readFile('examples/policy.json', 'utf8')) as Terms
  const csv = await readFile('examples/payroll-2026-q3.csv', 'utf8')
  const lines = parse(csv, { columns: true }) as Line[]
  const red = lines.flatMap((line, index) => (isRed(line, terms) ? [index + 1] : []))
  const green = lines.filter((line) => !isRed(line, terms))
  const premium = green.reduce((sum, line) => sum + premiumCents(line, terms), 0n)
  expect(lines).toHaveLength(1200)
  expect(red).toHaveLength(25)

  const { code, stdout, stderr } = await run([])

  expect(stderr).toBe('')
  expect(code).toBe(0)
  const shown = [...stdout.matchAll(/^row +(\d+) /gm)].map(([, row]) => Number(row))
  expect([...new Set(shown)]).toEqual(red)
  expect(stdout).toContain(`rows       1200: ${green.length} green, ${red.length} red`)
  expect(stdout).toContain(`"total_premium_cents":${premium}`)
  const dollars = `${(premium / 100n).toLocaleString('en-US')}.${String(premium % 100n).padStart(2, '0')}`
  expect(stdout).toContain(`premium    $${dollars}`)
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
