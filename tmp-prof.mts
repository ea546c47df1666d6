import { randomUUID } from 'node:crypto'
import { Session } from 'node:inspector/promises'
import { openBareEventStore } from './bench/peers/bare-tmp.ts'
import { encodedEvents, idOf } from './bench/timesheets-tmp.ts'
import { openEventStoreEventLog } from './infrastructure/event-store/eventstoredb/eventstoredb-event-log.ts'

const url = 'esdb://127.0.0.1:21913?tls=false'
const log = await openEventStoreEventLog({ url })
const bare = openBareEventStore(url)
const run = async (n: number, at: number, append: (id: string) => Promise<unknown>) => {
  let i = 0
  await Promise.all(
    Array.from({ length: at }, async () => {
      while (i < n) {
        i++
        await append(idOf(randomUUID()))
      }
    }),
  )
}
const cpu = () => {
  const u = process.cpuUsage()
  return (u.user + u.system) / 1000
}
const session = new Session()
session.connect()
await session.post('Profiler.enable')
for (const [name, f] of [
  ['ours', (id: string) => log.append(`timesheet-${id}`, -1, encodedEvents(id, 1, 0))],
  ['bare', (id: string) => bare.append(id, 1, -1)],
  ['ours', (id: string) => log.append(`timesheet-${id}`, -1, encodedEvents(id, 1, 0))],
  ['bare', (id: string) => bare.append(id, 1, -1)],
] as const) {
  await run(4000, 32, f)
  await session.post('Profiler.start')
  const b = cpu()
  await run(10000, 32, f)
  console.log(name, 'us/event', Math.round(((cpu() - b) * 1000) / 10000))
  const { profile } = await session.post('Profiler.stop')
  const self = new Map<string, number>()
  const nodes = new Map(profile.nodes.map((n) => [n.id, n]))
  profile.samples!.forEach((id, i) => {
    const n = nodes.get(id)!
    const k = `${n.callFrame.functionName}@${n.callFrame.url.split('/').slice(-2).join('/')}:${n.callFrame.lineNumber}`
    self.set(k, (self.get(k) ?? 0) + profile.timeDeltas![i]!)
  })
  console.log(
    [...self]
      .sort((a, b) => b[1] - a[1])
      .slice(0, 28)
      .map(([k, v]) => `${Math.round((v / 10000) * 10) / 10} ${k}`)
      .join('\n'),
  )
}
await log.close()
await bare.close()
process.exit(0)
