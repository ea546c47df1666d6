import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** A service started as its users start it: the built program in a process of its own. */
export interface RunningService {
  readonly mcpUrl: string
  readonly coreUrl: string
  readonly paymentsUrl: string
  readonly portalUrl: string
  readonly opsUrl: string
  readonly operatorToken: string
  readonly dataDir: string
  readonly process: ChildProcess
  /** Everything the process wrote to stdout and stderr so far, by line. */
  readonly output: readonly string[]
  /** SIGTERM; resolves with the exit code. Removes the data directory unless it was given or is kept. */
  stop(options?: { keepData?: boolean }): Promise<number | null>
  /** kill -9 of the service process; resolves when it is gone. The data directory stays. */
  kill(): Promise<void>
}

/**
 * Starts `dist/main.js` on free ports and waits for its ready line.
 * @param options.env settings on top of the defaults for tests (virtual clock, no rate limits).
 * @param options.dataDir an existing data directory, to continue where another service stopped.
 * @param options.release the built project to start, default this one.
 */
export async function startService(
  options: { env?: Record<string, string>; dataDir?: string; timeoutMs?: number; release?: string } = {},
): Promise<RunningService> {
  const ownsData = options.dataDir === undefined
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'compstream-')))
  const child = spawn(process.execPath, ['--enable-source-maps', 'dist/main.js'], {
    env: {
      PATH: process.env.PATH,
      HOST: '127.0.0.1',
      MCP_PORT: '0',
      CORE_PORT: '0',
      PAYMENTS_PORT: '0',
      PORTAL_PORT: '0',
      OPS_PORT: '0',
      DATA_DIR: dataDir,
      CLOCK: 'virtual',
      RATE_LIMIT_RPS: '0',
      ...options.env,
    },
    ...(options.release === undefined ? {} : { cwd: options.release }),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output: string[] = []
  const ready = await new Promise<Record<string, string>>((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL')
      reject(new Error(`The service did not become ready:\n${output.slice(-20).join('\n')}`))
    }, options.timeoutMs ?? 60_000)
    createInterface({ input: child.stderr! }).on('line', (line) => output.push(line))
    createInterface({ input: child.stdout! }).on('line', (line) => {
      output.push(line)
      if (!line.includes('"ready"')) return
      clearTimeout(timer)
      resolve(JSON.parse(line))
    })
    child.once('exit', (code) => {
      clearTimeout(timer)
      reject(new Error(`The service ended with code ${code}:\n${output.slice(-20).join('\n')}`))
    })
  })
  const exited = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)))
  const operatorToken =
    options.env?.OPERATOR_TOKEN ?? (await readFile(join(dataDir, 'operator-token'), 'utf8')).trim()
  return {
    mcpUrl: ready.mcp!,
    coreUrl: ready.core!,
    paymentsUrl: ready.payments!,
    portalUrl: ready.portal!,
    opsUrl: ready.ops!,
    operatorToken,
    dataDir,
    process: child,
    output,
    async stop({ keepData = false } = {}) {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM')
      const code = await exited
      if (ownsData && !keepData) await rm(dataDir, { recursive: true, force: true })
      return code
    },
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
  }
}
