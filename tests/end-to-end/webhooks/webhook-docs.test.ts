import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { REQUIRED_FIELDS } from '../../../clients/node/webhook-events.ts'
import { signedHeaders } from '../../../infrastructure/webhooks/signed-headers.ts'
import { freePort } from '../../support/server-process.ts'
import { type Receiver, startReceiver } from '../../support/webhook-receiver.ts'

/** The examples that partners copy, as they stand in the documents. */

let receiver: Receiver
beforeAll(async () => {
  receiver = await startReceiver()
})
afterAll(() => receiver?.stop())

async function example(file: string, language: string, holding: string): Promise<string> {
  const text = await readFile(file, 'utf8')
  const found = [...text.matchAll(new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``, 'g'))]
  return found.map(([, code]) => code!).find((code) => code.includes(holding))!
}

function has(program: string): boolean {
  try {
    execFileSync(program, ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

const LANGUAGES = [
  { language: 'js', program: process.execPath, args: ['--input-type=module'] },
  { language: 'python', program: 'python3', args: ['-'] },
]

describe.each(LANGUAGES)('the receiver in $language', ({ language, program, args }) => {
  test.runIf(has(program))('takes what is signed, refuses the rest, and handles an event once', async () => {
    const secret = `whsec_${randomBytes(32).toString('base64')}`
    const port = await freePort()
    const code = await example('docs/partners/webhooks.md', language, 'WEBHOOK_SECRET')
    const child = spawn(program, args, {
      env: { PATH: process.env.PATH, HOME: process.env.HOME, PORT: String(port), WEBHOOK_SECRET: secret },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    const output: string[] = []
    child.stdout.on('data', (part) => output.push(String(part)))
    child.stderr.on('data', (part) => output.push(language === 'python' ? '' : String(part)))
    child.stdin.end(code)
    try {
      await listening(port, child)
      const required = [...REQUIRED_FIELDS['payment.completed'], ...REQUIRED_FIELDS['payment.failed']]
      const fields = Object.fromEntries(required.map((name) => [name, 'x']))
      const body = JSON.stringify({ ...fields, payment_id: 'f1', amount_cents: 120_000, note: 'Zoë' })
      const signed = (changes: Partial<Parameters<typeof signedHeaders>[0]> = {}) =>
        signedHeaders({
          secret,
          eventId: 'a1'.repeat(12),
          eventType: 'payment.completed',
          body,
          timestamp: Date.now(),
          ...changes,
        })
      const post = async (headers: Readonly<Record<string, string>>, sent = body) =>
        (await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body: sent })).status
      expect(await post(signed())).toBe(204)
      // the next attempt of the same event
      expect(await post(signed({ timestamp: Date.now() + 1 }))).toBe(204)
      expect(await post(signed(), body.replace('120000', '120001'))).toBe(400)
      expect(await post(signed({ secret: `whsec_${randomBytes(32).toString('base64')}` }))).toBe(400)
      expect(await post(signed({ timestamp: Date.now() - 400_000 }))).toBe(400)
      expect(await post({})).toBe(400)
      expect(await post({ ...signed(), 'X-Webhook-Timestamp': 'x' })).toBe(400)
      expect(await post(signed({ eventId: 'b2'.repeat(12), eventType: 'payment.failed' }))).toBe(204)
      await expect.poll(() => output.join('')).toBe('paid f1 120000\n')
    } finally {
      child.kill('SIGKILL')
    }
  })
})

async function listening(port: number, child: ChildProcess): Promise<void> {
  await expect
    .poll(async () => {
      if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}`)
      return new Promise((resolve) => {
        const socket = connect(port, '127.0.0.1')
        socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
        socket.once('connect', () => socket.destroy())
      })
    })
    .toBe(true)
}
