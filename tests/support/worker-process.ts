import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { build } from 'esbuild'
import { eventStoreOf } from './installation.ts'

/** A process of its own with a process manager runner whose work never ends. */
export interface WorkerProcess {
  /** Waits until the process has printed a line. */
  line(text: string): Promise<void>
  /** kill -9; resolves when it is gone. */
  kill(): Promise<void>
  /** SIGSTOP: it keeps its connections and does nothing more. */
  freeze(): void
  thaw(): void
}

const PROGRAM = `
  import { z } from 'zod'
  import { backoff, work } from '../../application/process-managers/process-manager.ts'
  import { openWorkbench, storeWork } from './workbench.ts'
  const leaseMs = Number(process.env.LEASE_MS)
  const bench = await openWorkbench(process.env.DATABASE, { eventStoreUrl: process.env.EVENT_STORE, leaseMs })
  const key = 'never-done'
  const piece = { processManager: 'endless', kind: 'deliver', key, payload: { parcel: 'endless' }, dueAt: 0 }
  const because = { correlationId: 'c', causationId: 'c', tenantId: null, environment: null }
  await storeWork(bench.store, { ...piece, ...because })
  const deliver = work({ payload: z.any(), retry: backoff(), timeLimitMs: 3_600_000 }, () =>
    new Promise(() => console.log('working')))
  await bench.run([{ name: 'endless', startAt: 'beginning', on: [], work: { deliver } }], { workLeaseMs: leaseMs })
`

/**
 * Starts it on a database; the program is bundled in memory.
 * @param options.leaseMs time to live of its leases and of its claims on work, default 1000.
 */
export async function startWorkerProcess(
  databaseUrl: string,
  options: { readonly leaseMs?: number } = {},
): Promise<WorkerProcess> {
  const eventStore = await eventStoreOf(databaseUrl)
  const bundle = await build({
    stdin: { contents: PROGRAM, resolveDir: import.meta.dirname, loader: 'ts' },
    ...{
      bundle: true,
      write: false,
      platform: 'node',
      format: 'esm',
      target: 'node20',
      packages: 'external',
    },
  })
  const child = spawn(process.execPath, ['--input-type=module', '-'], {
    cwd: `${import.meta.dirname}/../..`,
    env: {
      PATH: process.env.PATH,
      DATABASE: databaseUrl,
      LEASE_MS: String(options.leaseMs ?? 1_000),
      ...(eventStore === null ? {} : { EVENT_STORE: eventStore }),
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const lines = new Set<string>()
  const listeners = new Set<() => void>()
  const tell = () => {
    for (const listener of listeners) listener()
  }
  createInterface({ input: child.stdout }).on('line', (text) => {
    lines.add(text)
    tell()
  })
  child.once('exit', tell)
  child.stdin.end(bundle.outputFiles[0]!.text)
  return {
    line: (text) =>
      new Promise((resolve, reject) => {
        const look = () => {
          if (lines.has(text)) resolve()
          else if (child.exitCode !== null) reject(new Error(`the worker ended with code ${child.exitCode}`))
          else return
          listeners.delete(look)
        }
        listeners.add(look)
        look()
      }),
    freeze: () => void child.kill('SIGSTOP'),
    thaw: () => void child.kill('SIGCONT'),
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
  }
}
