import { type ChildProcess, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'

/** Below those that systems give to connections. */
const SERVER_PORTS = [12_000, 32_000] as const
const READY_LIMIT_MS = 240_000
/**
 * For EventStoreDB. On few cores a .NET server makes a thread each half second when it lacks some, and answers nobody for
 * seconds after its start.
 */
export const EVENTSTOREDB_ENVIRONMENT = {
  EVENTSTORE_TELEMETRY_OPTOUT: 'true',
  DOTNET_ThreadPool_ForceMinWorkerThreads: '0x20',
} as const

/** A process of a server's program, not yet started. */
export interface ServerProcess {
  /** Starts it and waits until `ready` says so. @throws Error when it ends, or does not become ready in time. */
  start(ready: () => Promise<boolean>): Promise<void>
  /** kill -9. */
  kill(): Promise<void>
  /** SIGTERM, and waits until it is gone. */
  end(): Promise<void>
  /** SIGSTOP: it keeps its connections and does nothing more. */
  freeze(): void
  /** Lets a frozen server go on. */
  thaw(): void
  /** Whether it runs. */
  isRunning(): boolean
}

/**
 * @param args settings of the server's command line.
 * @param env settings that it takes from the environment only.
 */
export function serverProcess(
  path: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): ServerProcess {
  let child: ChildProcess | undefined
  const end = async (signal: NodeJS.Signals) => {
    const dying = child
    child = undefined
    if (!dying) return
    running.delete(dying)
    const gone = new Promise((resolve) => dying.once('exit', resolve))
    if (dying.exitCode !== null || dying.signalCode !== null) return
    dying.kill(signal)
    await gone
  }
  return {
    async start(ready) {
      const started = spawn(path, args, {
        stdio: 'ignore',
        env: { ...process.env, ...EVENTSTOREDB_ENVIRONMENT, ...env },
      })
      child = started
      running.add(started)
      const deadline = performance.now() + READY_LIMIT_MS
      const hasEnded = () => started.exitCode !== null || started.signalCode !== null
      while (!hasEnded() && performance.now() < deadline) {
        if (await ready()) return
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
      // or it was started anew meanwhile
      if (child === started) await end('SIGKILL')
      throw new Error(`${path} did not become ready (exit code ${started.exitCode})`)
    },
    isRunning: () => child?.exitCode === null && child.signalCode === null,
    kill: () => end('SIGKILL'),
    end: () => end('SIGTERM'),
    freeze: () => {
      child?.kill('SIGSTOP')
      if (child?.pid !== undefined) untilStopped(child.pid)
    },
    thaw: () => void child?.kill('SIGCONT'),
  }
}

// a test file that fails half way leaves no server behind
const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/**
 * A port that is free, and stays so for whoever starts or restarts a server on it: the system gives ports of this range
 * to nobody who asks for just any.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(...SERVER_PORTS)
    const isFree = await new Promise<boolean>((resolve) => {
      const server = createServer()
      server.once('error', () => resolve(false))
      server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
    })
    if (isFree) return port
  }
}

/** Waits until every thread has stopped, where that can be seen: one that runs on could still answer. */
function untilStopped(pid: number): void {
  const threads = `/proc/${pid}/task`
  if (!existsSync(threads)) return
  const isStopped = (thread: string) => {
    try {
      return /\) T /.test(readFileSync(`${threads}/${thread}/stat`, 'utf8'))
    } catch {
      // it has just ended
      return true
    }
  }
  const deadline = performance.now() + 5_000
  while (!readdirSync(threads).every(isStopped) && performance.now() < deadline);
}
