import { randomUUID } from 'node:crypto'
import { openBareEventStore } from './bench/peers/bare-tmp.ts'
import { encodedEvents, idOf } from './bench/timesheets-tmp.ts'
import { openEventStoreEventLog } from './infrastructure/event-store/eventstoredb/eventstoredb-event-log.ts'

const url = 'esdb://127.0.0.1:21913?tls=false'
const run = async (n: number, at: number, append: (id: string) => Promise<unknown>) => {
  const ids = Array.from({ length: n }, () => idOf(randomUUID()))
  const b = performance.now()
  let i = 0
  await Promise.all(
    Array.from({ length: at }, async () => {
      while (i < n) {
        const id = ids[i++]!
        await append(id)
      }
    }),
  )
  return (n / (performance.now() - b)) * 1000
}
const bare = openBareEventStore(url)
const log = await openEventStoreEventLog({ url })
const ours = (size: number) => (id: string) => log.append(`timesheet-${id}`, -1, encodedEvents(id, size, 0))
const theirs = (size: number) => (id: string) => bare.append(id, size, -1)
const med = (a: number[]) => a.toSorted((x, y) => x - y)[a.length >> 1]!

const cpu = () => {
  const u = process.cpuUsage()
  return (u.user + u.system) / 1000
}
for (const [at, size, n] of [
  [32, 1, 600],
  [256, 1, 1024],
  [32, 10, 200],
  [256, 10, 512],
] as const) {
  await run(n * 3, at, ours(size))
  await run(n * 3, at, theirs(size))
  const o: number[] = [],
    t: number[] = []
  let co = 0,
    ct = 0
  for (let r = 0; r < 15; r++) {
    let b = cpu()
    o.push(await run(n, at, ours(size)))
    co += cpu() - b
    b = cpu()
    t.push(await run(n, at, theirs(size)))
    ct += cpu() - b
  }
  const pairs = o.map((x, i) => x / t[i]!)
  console.log(
    `append ${at} at once, ${size} events: ours ${Math.round(med(o) * size)} bare ${Math.round(med(t) * size)} median of ratios ${med(pairs).toFixed(2)} best/best ${(Math.max(...o) / Math.max(...t)).toFixed(2)} cpu us/event ours ${Math.round((co * 1000) / n / size / 15)} bare ${Math.round((ct * 1000) / n / size / 15)}`,
  )
}
const head = await log.head()
const all = 50_000
const catchUp = async () => {
  const b = performance.now()
  let n = 0
  const c = new AbortController()
  for await (const p of log.subscribe({ after: 0n, pageSize: 1000, signal: c.signal })) {
    n += p.events.length
    if (n >= all) {
      c.abort()
      break
    }
  }
  return (n / (performance.now() - b)) * 1000
}
const bareRead = async () => {
  const b = performance.now()
  await bare.readLog(all)
  return (all / (performance.now() - b)) * 1000
}
await catchUp()
await bareRead()
const o: number[] = [],
  t: number[] = []
for (let r = 0; r < 5; r++) {
  o.push(await catchUp())
  t.push(await bareRead())
}
console.log(
  `catch-up: ours ${Math.round(med(o))} bare ${Math.round(med(t))} ratio ${(med(o) / med(t)).toFixed(2)}`,
  o.map((x, i) => (x / t[i]!).toFixed(2)).join(' '),
)
await log.close()
await bare.close()
