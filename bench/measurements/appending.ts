import { randomUUID } from 'node:crypto'
import type { Effort } from '../effort.ts'
import { eventRows, openOurLog } from '../our-log.ts'
import { openEmmett } from '../peers/emmett.ts'
import { createPlainTable, openPlainWriter, type PlainWriter } from '../peers/plain-postgres.ts'
import type { Row } from '../report.ts'
import type { BenchServer } from '../servers.ts'
import { type Figure, fasterOf, inTurns, throughput } from '../statistics.ts'
import { idOf } from '../timesheets.ts'

const ROUNDS = 5
const BATCH = 10

/** Appends by so many at once, the same number of them on both sides. */
const SINGLE = [
  { atOnce: 1, appends: 1_000 },
  { atOnce: 16, appends: 16 * 256 },
]
const MANY = { atOnce: 256, appends: 256 * 64 }
const BATCHES = { atOnce: 32, appends: 32 * 100 }

/** Appends to the event log against emmett, and against bare INSERTs of the same rows. All of them wait for the disk. */
export async function measureAppending(server: BenchServer, effort: Effort): Promise<Row[]> {
  const url = await server.createDatabase('appending')
  const ours = await openOurLog({ url })
  const emmett = await openEmmett(await server.createDatabase('appending_emmett'))
  const { atOnce } = MANY
  const table = await createPlainTable(url)
  const plain = await openPlainWriter(url, table, { rowsPerInsert: atOnce, connections: 1 })
  const plainTwice = await openPlainWriter(url, table, { rowsPerInsert: atOnce / 2, connections: 2 })
  let inserted = 0
  const rounds = effort.rounds(ROUNDS)
  const bySide = (load: { atOnce: number; appends: number }, events: number) => {
    const total = effort.amount(load.appends, load.atOnce)
    const run = async (append: (id: string, events: number) => Promise<void>): Promise<Figure> => {
      // ids are made outside the time taken
      const ids = Array.from({ length: total }, () => idOf(randomUUID()))
      const pace = await throughput(total, load.atOnce, (index) => append(ids[index]!, events))
      return { ...pace, value: pace.value * events }
    }
    return { ours: () => run(ours.append), emmett: () => run(emmett.append) }
  }
  const insertInto = (writer: PlainWriter) => async (): Promise<Figure> => {
    // these rows, too: to make them is no work of the table's
    const rows = eventRows(inserted + 1, effort.amount(MANY.appends, MANY.atOnce))
    inserted += rows.length
    const started = performance.now()
    await writer.insert(rows)
    return { value: (rows.length / (performance.now() - started)) * 1000 }
  }
  try {
    const warmUp = bySide({ atOnce, appends: atOnce * 8 }, 1)
    await warmUp.ours()
    await warmUp.emmett()
    await insertInto(plain)()
    const rows: Row[] = []
    for (const load of SINGLE) {
      const figures = await inTurns(rounds, bySide(load, 1))
      rows.push(
        against('emmett', `append of one event to its own stream, ${load.atOnce} at once`, figures, 'none'),
      )
    }
    const many = await inTurns(rounds, {
      ...bySide(MANY, 1),
      plain: insertInto(plain),
      plainTwice: insertInto(plainTwice),
    })
    const batches = await inTurns(rounds, bySide(BATCHES, BATCH))
    const work = `append of one event to its own stream, ${atOnce} at once`
    return [
      ...rows,
      against('emmett', work, many, 10),
      {
        work,
        unit: 'per second',
        ours: many.ours,
        peer: {
          name: 'multi-row INSERTs of the rows, over one connection or two',
          rounds: fasterOf(many.plain, many.plainTwice),
        },
        target: { kind: 'at least', ratio: 0.65, unit: 'percent' },
      },
      against('emmett', `append of ${BATCH} events to its own stream, 32 at once; events`, batches, 3),
    ]
  } finally {
    await plain.close()
    await plainTwice.close()
    await emmett.close()
    await ours.close()
  }
}

function against(
  name: string,
  work: string,
  figures: { ours: readonly Figure[]; emmett: readonly Figure[] },
  atLeast: number | 'none',
): Row {
  return {
    work,
    unit: 'per second',
    ours: figures.ours,
    peer: { name, rounds: figures.emmett },
    target: atLeast === 'none' ? { kind: 'none' } : { kind: 'at least', ratio: atLeast, unit: 'times' },
  }
}
