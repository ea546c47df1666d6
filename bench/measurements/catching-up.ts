import type { Effort } from '../effort.ts'
import { type LogPlace, openOurLog } from '../our-log.ts'
import { type Commit, catchUp, expectCount } from '../our-projection.ts'
import { openEmmett } from '../peers/emmett.ts'
import { readLog } from '../peers/plain-postgres.ts'
import { amount, type Row } from '../report.ts'
import type { BenchServer } from '../servers.ts'
import { type Figure, inTurns, throughput } from '../statistics.ts'
import { type Layout, passes } from '../timesheets.ts'

const ROUNDS = 3
const STREAMS = 2_000
const EVENTS = 20
/** What a page of the projection runtime holds. */
const PAGE = 1_000
/** emmett's consumer without what its default pages of 100 and the pause after each cost it. */
const LARGE_PAGES = { batchSize: PAGE, pullingFrequencyInMs: 0 }
const COMMITS: readonly Commit[] = ['does not wait', 'waits for the disk']

/**
 * A projection that catches up with a log it has not seen, one row per stream, checkpointed: over streams that are
 * interleaved and over ones that stand one behind the other, with commits that wait for the disk and that do not. Both
 * sides do the same at a time.
 */
export async function measureCatchingUp(server: BenchServer, effort: Effort): Promise<Row[]> {
  const rows: Row[] = []
  for (const interleaved of [true, false]) {
    const layout = { streams: effort.amount(STREAMS), events: EVENTS, interleaved }
    rows.push(...(await measureLayout(server, effort, layout)))
  }
  return rows
}

async function measureLayout(server: BenchServer, effort: Effort, layout: Layout): Promise<Row[]> {
  const name = layout.interleaved ? 'interleaved' : 'contiguous'
  const all = layout.streams * layout.events
  const place = { url: await server.createDatabase(`catching_up_${name}`) }
  await fill(place, layout)
  const emmett = await emmettOn(server, `catching_up_emmett_${name}`, layout)
  const figure = (elapsed: number): Figure => ({ value: (all / elapsed) * 1000 })
  await catchUp(place, 'warm_up', layout)
  const work = `catch-up of ${all.toLocaleString('en-US')} events, ${name}, one row for each of ${layout.streams.toLocaleString('en-US')} streams`
  const asShipped = layout.interleaved ? await emmett.catchUp('as_shipped', 'waits for the disk') : null
  const note =
    asShipped === null
      ? {}
      : {
          note: `as emmett ships, with pages of 100 and a pause after each, once: ${amount(figure(asShipped).value, 'per second')}`,
        }
  const rows: Row[] = []
  for (const [n, commit] of COMMITS.entries()) {
    const figures = await inTurns(effort.rounds(ROUNDS), {
      ours: async (round) => figure(await catchUp(place, `round_${n}_${round}`, layout, commit)),
      emmett: async (round) => figure(await emmett.catchUp(`round_${n}_${round}`, commit, LARGE_PAGES)),
    })
    rows.push({
      work: `${work}; a commit ${commit}`,
      unit: 'per second',
      ours: figures.ours,
      peer: { name: `emmett's consumer, pages of ${PAGE} without pauses`, rounds: figures.emmett },
      target: { kind: 'none' },
      ...(commit === 'waits for the disk' ? note : {}),
    })
  }
  const limit = await inTurns(effort.rounds(ROUNDS), {
    ours: async (round) => figure(await catchUp(place, `limit_${round}`, layout)),
    reading: async () => {
      const started = performance.now()
      expectCount(await readLog(place.url, PAGE), all)
      return figure(performance.now() - started)
    },
  })
  rows.push({
    work: `${work}; a commit does not wait`,
    unit: 'per second',
    ours: limit.ours,
    peer: { name: 'reading the pages and JSON.parse', rounds: limit.reading },
    target: { kind: 'at least', ratio: 0.6, unit: 'percent' },
  })
  return rows
}

/** Appends the events to catch up with. */
export async function fill(place: LogPlace, layout: Layout): Promise<void> {
  const { append, close } = await openOurLog(place)
  for (const pass of passes(layout)) {
    await throughput(pass.length, 64, (index) => {
      const { id, count, revision } = pass[index]!
      return append(id, count, revision)
    })
  }
  await close()
}

/** An emmett store with the same events, whose sessions are opened anew for each catch-up. */
async function emmettOn(server: BenchServer, database: string, layout: Layout) {
  const url = await server.createDatabase(database)
  await server.setSynchronousCommit(database, 'off')
  const filling = await openEmmett(url)
  // one after another: what is appended side by side, its consumer may skip
  for (const { id, count, revision } of passes(layout).flat()) await filling.append(id, count, revision)
  await filling.close()
  return {
    /** @returns milliseconds. */
    async catchUp(
      table: string,
      commit: Commit,
      pulling?: { batchSize: number; pullingFrequencyInMs: number },
    ): Promise<number> {
      await server.setSynchronousCommit(database, commit === 'waits for the disk' ? 'on' : 'off')
      const emmett = await openEmmett(url)
      try {
        return await emmett.catchUp(table, layout, pulling)
      } finally {
        await emmett.close()
      }
    },
  }
}
