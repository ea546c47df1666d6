import type { Effort } from '../effort.ts'
import { openOurLog } from '../our-log.ts'
import { createPlainTable } from '../peers/plain-postgres.ts'
import type { Row } from '../report.ts'
import type { BenchServer } from '../servers.ts'
import { inTurns } from '../statistics.ts'
import { startWriters, type WriterSpec } from '../writers.ts'

const ROUNDS = 5
const PROCESSES = 2
const AT_ONCE = 256
const EVENTS = AT_ONCE * 64

/** Two processes that append to one log, against two that insert the same rows into one plain table. */
export async function measureTwoWriters(server: BenchServer, effort: Effort): Promise<Row[]> {
  const url = await server.createDatabase('two_writers')
  // makes the tables, which the plain one is like
  await (await openOurLog({ url })).close()
  const table = await createPlainTable(url)
  const specs = (of: string | null): WriterSpec[] =>
    Array.from({ length: PROCESSES }, (_, index) => ({
      url,
      table: of,
      index,
      atOnce: AT_ONCE / PROCESSES,
    }))
  const ours = await startWriters(specs(null))
  const plain = await startWriters(specs(table))
  try {
    const events = effort.amount(EVENTS, AT_ONCE)
    await ours.write(AT_ONCE * 8)
    await plain.write(AT_ONCE * 8)
    const figures = await inTurns(effort.rounds(ROUNDS), {
      ours: () => ours.write(events),
      plain: () => plain.write(events),
    })
    return [
      {
        work: `append of one event to its own stream, ${AT_ONCE} at once by two processes`,
        unit: 'per second',
        ours: figures.ours,
        peer: { name: 'multi-row INSERTs of the rows by two processes', rounds: figures.plain },
        target: { kind: 'at least', ratio: 0.55, unit: 'percent' },
      },
    ]
  } finally {
    await ours.stop()
    await plain.stop()
  }
}
