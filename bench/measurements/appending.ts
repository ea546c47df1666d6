import { randomUUID } from 'node:crypto'
import { derivedEventId } from '../../application/event-store.ts'
import { chainHash, NO_PREDECESSOR, withHash } from '../../application/ports/hash-chain.ts'
import { openEmmett } from '../peers/emmett.ts'
import { type EventRow, openPlainTable } from '../peers/plain-postgres.ts'
import { perSecond, type Row } from '../report.ts'
import { type BenchServer, openOurLog } from '../servers.ts'
import { inTurns, throughput } from '../statistics.ts'
import { encodedEvents, hoursEvent, idOf, METADATA, registry } from '../timesheets.ts'

const ROUNDS = 5
const SINGLE = { atOnce: 256, ours: 256 * 100, emmett: 256 * 16 }
const BATCHES = { atOnce: 32, size: 10, ours: 32 * 100, emmett: 32 * 25 }

/** Appends to the event log against emmett, and against bare INSERTs of the same rows. */
export async function measureAppending(server: BenchServer): Promise<Row[]> {
  const url = await server.createDatabase('appending')
  const ours = await openOurLog(url)
  const emmett = await openEmmett(await server.createDatabase('appending_emmett'))
  const statement = { rowsPerInsert: SINGLE.atOnce, connections: 1 }
  const plain = await openPlainTable(url, statement)
  const plainTwice = await openPlainTable(url, { rowsPerInsert: SINGLE.atOnce / 2, connections: 2 })
  let inserted = 0
  try {
    // ids are made outside the time taken
    const append = (total: number, atOnce: number, events: number) => {
      const ids = newIds(total)
      return throughput(total, atOnce, (index) =>
        ours.log.append(`timesheet-${ids[index]!}`, 'noStream', encodedEvents(ids[index]!, events)),
      )
    }
    const appendEmmett = (total: number, atOnce: number, events: number) => {
      const ids = newIds(total)
      return throughput(total, atOnce, (index) => emmett.append(ids[index]!, events))
    }
    // these rows, too: to make them is no work of the table's
    const rowsToInsert = () =>
      Array.from({ length: SINGLE.ours }, () => {
        inserted += 1
        return eventRow(inserted)
      })
    const insertInto = (table: typeof plain) => async () => {
      const rows = rowsToInsert()
      const started = performance.now()
      await table.insert(rows)
      return (rows.length / (performance.now() - started)) * 1000
    }

    await append(SINGLE.atOnce * 20, SINGLE.atOnce, 1)
    await appendEmmett(SINGLE.atOnce * 4, SINGLE.atOnce, 1)
    await insertInto(plain)()
    const single = await inTurns(ROUNDS, {
      ours: () => append(SINGLE.ours, SINGLE.atOnce, 1),
      emmett: () => appendEmmett(SINGLE.emmett, SINGLE.atOnce, 1),
      plain: insertInto(plain),
      plainTwice: insertInto(plainTwice),
    })
    const batches = await inTurns(ROUNDS, {
      ours: async () => BATCHES.size * (await append(BATCHES.ours, BATCHES.atOnce, BATCHES.size)),
      emmett: async () => BATCHES.size * (await appendEmmett(BATCHES.emmett, BATCHES.atOnce, BATCHES.size)),
    })
    // whichever way of inserting is the faster one here
    const limit = Math.max(single.plain, single.plainTwice)
    const singleWork = 'append of one event to its own stream, 256 at once'
    return [
      {
        work: singleWork,
        ours: perSecond(single.ours),
        peer: { name: 'emmett', value: perSecond(single.emmett) },
        target: { kind: 'at least', ratio: 10, unit: 'times' },
        ratio: single.ours / single.emmett,
      },
      {
        work: singleWork,
        ours: perSecond(single.ours),
        peer: { name: 'multi-row INSERTs of the rows', value: perSecond(limit) },
        target: { kind: 'at least', ratio: 0.6, unit: 'percent' },
        ratio: single.ours / limit,
      },
      {
        work: 'append of 10 events to a stream, 32 at once; events',
        ours: perSecond(batches.ours),
        peer: { name: 'emmett', value: perSecond(batches.emmett) },
        target: { kind: 'at least', ratio: 3, unit: 'times' },
        ratio: batches.ours / batches.emmett,
      },
    ]
  } finally {
    await plain.close()
    await plainTwice.close()
    await emmett.close()
    await ours.close()
  }
}

function newIds(count: number): string[] {
  return Array.from({ length: count }, () => idOf(randomUUID()))
}

/** An event as it would stand in the log. */
function eventRow(position: number): EventRow {
  const id = idOf(`plain ${position}`)
  const stream = `timesheet-${id}`
  const event = registry.encode(hoursEvent(id, 0), derivedEventId(id, 0), METADATA)
  const hash = chainHash(NO_PREDECESSOR, stream, 0, event)
  return [String(position), 0, event.eventId, stream, event.type, event.data, withHash(event.metadata, hash)]
}
