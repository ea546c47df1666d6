import { readdir, readFile } from 'node:fs/promises'
import pg from 'pg'

/** Clock ticks of the kernel in a second. */
const TICKS = 100

/** @returns parent and processor times of a process, in seconds, also of its children that have ended; null: it is gone. */
async function statOf(pid: string): Promise<{ parent: string; own: number; ended: number } | null> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null)
  if (stat === null) return null
  // behind the name, which may hold anything
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const seconds = (from: number) => (Number(fields[from]) + Number(fields[from + 1])) / TICKS
  return { parent: fields[1]!, own: seconds(11), ended: seconds(13) }
}

/**
 * A clock of all processor time that the PostgreSQL server of a database takes, in seconds.
 * @param url of a database on this machine.
 */
export async function processorTimeOfPostgres(url: string): Promise<() => Promise<number>> {
  const client = new pg.Client(url)
  await client.connect()
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
  const postmaster = (await statOf(String(rows[0]!.pid)))!.parent
  await client.end()
  return async () => {
    const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
    const all = await Promise.all(pids.map(async (pid) => ({ pid, stat: await statOf(pid) })))
    let sum = 0
    for (const { pid, stat } of all) {
      if (pid === postmaster && stat) sum += stat.own + stat.ended
      else if (stat?.parent === postmaster) sum += stat.own
    }
    return sum
  }
}
