import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { vi } from 'vitest'
import { addressOf, PLAIN_NODE } from './eventstoredb.ts'
import { freePort, type ServerProcess, serverProcess } from './server-process.ts'

/** Three nodes of EventStoreDB on this machine that choose a leader among them. */
interface EventStoreCluster {
  /** `127.0.0.1:port` of every node. */
  readonly nodes: readonly string[]
  /** kill -9 of the leader; resolves when another one leads and the old one is back as a follower. */
  killLeader(): Promise<void>
  /** Asks the leader to step down; resolves when another one leads and it follows. It is not killed. */
  resignLeader(): Promise<void>
  /** Ends it and removes its data. */
  stop(): Promise<void>
}

interface Member {
  readonly state: string
  readonly isAlive: boolean
  readonly httpEndPointPort: number
}

const LIMIT_MS = 240_000
/** How long the others may take to choose among them, in milliseconds. */
const RESIGN_MS = 8_000

/** @param path of the server's program. */
export async function startCluster(path: string): Promise<EventStoreCluster> {
  const folder = await mkdtemp(join(tmpdir(), 'compstream-cluster-'))
  const ports = await Promise.all(Array.from({ length: 3 }, freePort))
  const processes = new Map<number, ServerProcess>()
  for (const port of ports) {
    const seeds = ports.filter((other) => other !== port).map((other) => `127.0.0.1:${other}`)
    processes.set(
      port,
      serverProcess(path, [
        ...[...PLAIN_NODE, ...(await addressOf(port)), '--gossip-interval-ms=500'],
        ...['--cluster-size=3', '--discover-via-dns=false', '--gossip-seed', seeds.join(',')],
        ...['--db', join(folder, `db-${port}`), '--log', join(folder, `log-${port}`)],
      ]),
    )
  }
  /** How a node sees the cluster; empty when it does not answer, or breaks off, or is not yet ready to. */
  const members = (port: number): Promise<readonly Member[]> =>
    fetch(`http://127.0.0.1:${port}/gossip`)
      .then(async (answer) => ((await answer.json()) as { members?: readonly Member[] }).members ?? [])
      .catch(() => [])
  /** Whether a node knows of a leader and follows it, or leads. */
  const isPart = async (port: number) => {
    const seen = (await members(port)).filter(({ isAlive }) => isAlive)
    const own = seen.find(({ httpEndPointPort }) => httpEndPointPort === port)
    return /^(Leader|Follower)$/.test(own?.state ?? '') && seen.some(({ state }) => state === 'Leader')
  }
  let isStopped = false
  /** A node that has to take back what the others never got ends itself for that, to be started anew. */
  const keepUp = (port: number) => {
    const node = processes.get(port)!
    if (!isStopped && !node.isRunning()) node.start(() => isPart(port)).catch(() => undefined)
  }
  const until = <T>(look: () => Promise<T>, timeout = LIMIT_MS) =>
    vi.waitUntil(look, { timeout, interval: 50 })
  const leader = (except?: number, limitMs = LIMIT_MS) =>
    until(async () => {
      for (const port of ports) {
        if (port === except) continue
        keepUp(port)
        const own = (await members(port)).find(({ httpEndPointPort }) => httpEndPointPort === port)
        if (own?.state === 'Leader') return port
      }
      return null
    }, limitMs)
  const back = (port: number) =>
    until(() => {
      keepUp(port)
      return isPart(port)
    })
  const allBack = () => Promise.all(ports.map(back))
  const stop = async () => {
    isStopped = true
    await Promise.all([...processes.values()].map((node) => node.kill()))
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  try {
    await allBack()
  } catch (error) {
    await stop()
    throw error
  }
  return {
    nodes: ports.map((port) => `127.0.0.1:${port}`),
    async killLeader() {
      const old = await leader()
      const node = processes.get(old)!
      await node.kill()
      await leader(old)
      await allBack()
    },
    async resignLeader() {
      await allBack()
      const old = await leader()
      const post = (port: number, what: string) =>
        until(() => {
          keepUp(port)
          return fetch(`http://127.0.0.1:${port}/admin/node/${what}`, { method: 'POST' }).then(
            ({ ok }) => ok,
            () => false,
          )
        })
      // or it may be chosen again
      for (const port of ports) await post(port, `priority/${port === old ? -10 : 0}`)
      // on a busy machine the others may be too slow to take over, and it goes on to lead
      for (let attempt = 0, next: number | null = null; next === null; attempt += 1) {
        await post(old, 'resign')
        next = await leader(old, RESIGN_MS).catch((error) => (attempt < 20 ? null : Promise.reject(error)))
      }
      await allBack()
    },
    stop,
  }
}
