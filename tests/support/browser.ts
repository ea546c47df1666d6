import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findProgram } from './find-server.ts'

/** Path of the browser, null where there is none. */
export const browserPath = await findProgram(['chromium', 'chromium-browser', 'google-chrome'])

const PATIENCE_MS = 120_000

/** Pages of a test, under any host name of the browser's own. */
export interface Pages {
  readonly port: number
  /** Opens a page of `http://<name>:<port>` that runs a script of `main`; resolves with what its main function returns. */
  run(name: string, settings: unknown): Promise<unknown>
  close(): Promise<void>
}

/**
 * Serves a page that runs `script`, a module that exports `main(settings)`, and reports what it returns.
 * @param names host names that the browser takes for this machine.
 */
export async function servePages(script: string, names: readonly string[]): Promise<Pages> {
  const reports = new Map<string, (report: unknown) => void>()
  const settingsOf = new Map<string, unknown>()
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url!, 'http://page')
    const run = searchParams.get('run') ?? ''
    if (pathname === '/script.js') {
      response.setHeader('Content-Type', 'text/javascript')
      response.end(script)
    } else if (pathname === '/report') {
      let body = ''
      request.on('data', (part) => {
        body += part
      })
      request.on('end', () => {
        response.end()
        reports.get(run)?.(JSON.parse(body))
      })
    } else if (pathname === '/page') {
      response.setHeader('Content-Type', 'text/html')
      response.end(`<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><script type="module">
        import { main } from '/script.js'
        const report = await main(${JSON.stringify(settingsOf.get(run))}).catch((error) => ({ failed: String(error) }))
        await fetch('/report?run=${encodeURIComponent(run)}', { method: 'POST', body: JSON.stringify(report) })
      </script>`)
    } else {
      response.statusCode = 404
      response.end()
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  let runs = 0
  return {
    port,
    async run(name, settings) {
      runs += 1
      const run = String(runs)
      settingsOf.set(run, settings)
      const reported = new Promise((resolve) => reports.set(run, resolve))
      const profile = await mkdtemp(join(tmpdir(), 'compstream-browser-'))
      const output: string[] = []
      const browser = open(`http://${name}:${port}/page?run=${run}`, profile, names, output)
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<never>((_resolve, reject) => {
        timer = setTimeout(
          () => reject(new Error(`The page did not report:\n${output.slice(-20).join('')}`)),
          PATIENCE_MS,
        )
      })
      try {
        return await Promise.race([reported, late])
      } finally {
        clearTimeout(timer)
        await end(browser)
        await rm(profile, { recursive: true, force: true, maxRetries: 5 })
      }
    },
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function open(url: string, profile: string, names: readonly string[], output: string[]): ChildProcess {
  const browser = spawn(
    browserPath!,
    [
      ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
      ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
      ...['--disable-dev-shm-usage', '--disable-extensions', '--disable-features=HttpsUpgrades'],
      `--host-resolver-rules=${names.map((name) => `MAP ${name} 127.0.0.1`).join(', ')}`,
      `--user-data-dir=${profile}`,
      url,
    ],
    // a group of its own: it ends with its helpers
    { stdio: ['ignore', 'pipe', 'pipe'], detached: true },
  )
  for (const stream of [browser.stdout!, browser.stderr!]) {
    stream.on('data', (part) => output.push(String(part)))
  }
  return browser
}

async function end(browser: ChildProcess): Promise<void> {
  if (browser.exitCode !== null || browser.signalCode !== null) return
  const exited = new Promise((resolve) => browser.once('exit', resolve))
  process.kill(-browser.pid!, 'SIGKILL')
  await exited
}
