// @module-tag once: it starts the embedded server itself
// @module-tag long: cli/cli has the commands that it takes, payments-intake the sale, webhook-listen what it verifies
import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { findProgram } from '../../support/find-server.ts'
import { freePort } from '../../support/server-process.ts'
import { startService } from '../../support/service.ts'

/** The lines of the quickstart of partners, with the addresses of a service and a receiver. */
async function tour(paymentsUrl: string, receiverPort: number): Promise<string> {
  const readme = await readFile('docs/partners/README.md', 'utf8')
  const [, lines] = /^## Ten minutes$.*?^```sh\n(.*?)^```/ms.exec(readme)!
  return (
    lines!
      // what npx finds, without its search
      .replaceAll('npx compstream', 'node bin/compstream.js')
      .replaceAll('http://127.0.0.1:4003', paymentsUrl)
      .replaceAll(/\b3000\b/g, String(receiverPort))
  )
}

const canRun = (await findProgram(['bash'])) !== null && (await findProgram(['curl'])) !== null

test.skipIf(!canRun)(
  'the quickstart of partners sells, verifies, debits, catches up and prices (needs bash and curl)',
  async () => {
    const service = await startService({ env: { CLOCK: 'system' } })
    try {
      const shell = spawn('bash', ['-c', await tour(service.paymentsUrl, await freePort())], {
        env: {
          PATH: process.env.PATH,
          HOME: process.env.HOME,
          DATA_DIR: service.dataDir,
          COMPSTREAM_OPS_URL: service.opsUrl,
          COMPSTREAM_CORE_URL: service.coreUrl,
          COMPSTREAM_PAYMENTS_URL: service.paymentsUrl,
        },
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      let output = ''
      for (const stream of [shell.stdout, shell.stderr]) stream.on('data', (part: Buffer) => (output += part))
      // it ends once nothing that it started is left
      const code = await new Promise((resolve) => shell.on('close', resolve))
      expect([code, output]).toEqual([0, expect.stringMatching(/^verified payment\.completed /m)])
      expect(output).toMatch(/"amount_paid_cents":412300/)
      expect(output).toMatch(/"transaction_id":"[0-9a-f]{24}","status":"PENDING"/)
      expect(output).toMatch(/"resent":1\b/)
      expect(output).toContain('1176 green, 24 red')
      expect(output).toContain('$196,892.83')
      expect(output).toMatch(/verified +│ true/)
    } finally {
      await service.stop()
    }
  },
)

test.skipIf(!canRun)(
  'the quickstart of partners ends and says why where no service answers (needs bash and curl)',
  async ({ onTestFinished }) => {
    const nobody = `http://127.0.0.1:${await freePort()}`
    const shell = spawn('bash', ['-c', await tour(nobody, await freePort())], {
      env: {
        PATH: process.env.PATH,
        HOME: process.env.HOME,
        OPERATOR_TOKEN: 'op_none',
        COMPSTREAM_OPS_URL: nobody,
        COMPSTREAM_CORE_URL: nobody,
        COMPSTREAM_PAYMENTS_URL: nobody,
      },
      stdio: ['ignore', 'ignore', 'pipe'],
      // a group of its own: where it waits for ever, all that it started ends with it
      detached: true,
    })
    onTestFinished(() => {
      if (shell.exitCode === null) process.kill(-shell.pid!, 'SIGKILL')
    })
    let errors = ''
    shell.stderr.on('data', (part: Buffer) => (errors += part))
    await new Promise((resolve) => shell.on('close', resolve))
    expect(errors).toContain('"error":"Unreachable"')
  },
)
