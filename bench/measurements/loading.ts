import type { Effort } from '../effort.ts'
import { openOurLog } from '../our-log.ts'
import { openEmmett } from '../peers/emmett.ts'
import type { Row } from '../report.ts'
import type { BenchServer } from '../servers.ts'
import { inTurns, throughput } from '../statistics.ts'
import { idOf, type Timesheet } from '../timesheets.ts'

const ROUNDS = 5
const STREAMS = 2_000
const EVENTS = 20
const LOADS = 6_000
const AT_ONCE = 16

/** Reading, decoding and folding a stream, nothing cached. */
export async function measureLoading(server: BenchServer, effort: Effort): Promise<Row[]> {
  const ours = await openOurLog({ url: await server.createDatabase('loading') })
  const emmett = await openEmmett(await server.createDatabase('loading_emmett'))
  try {
    const streams = effort.amount(STREAMS)
    const loads = effort.amount(LOADS)
    const stream = (index: number) => idOf(`stream ${index % streams}`)
    await throughput(streams, 32, (index) => ours.append(stream(index), EVENTS))
    await throughput(streams, 8, (index) => emmett.append(stream(index), EVENTS))
    const load = async (index: number) => whole(await ours.load(stream(index), EVENTS))
    const loadEmmett = async (index: number) => whole(await emmett.load(stream(index)))
    await throughput(Math.ceil(loads / 4), AT_ONCE, load)
    await throughput(Math.ceil(loads / 4), AT_ONCE, loadEmmett)
    const figures = await inTurns(effort.rounds(ROUNDS), {
      ours: () => throughput(loads, AT_ONCE, load),
      emmett: () => throughput(loads, AT_ONCE, loadEmmett),
    })
    return [
      {
        work: `load of an aggregate of ${EVENTS} events, ${AT_ONCE} at once`,
        unit: 'per second',
        ours: figures.ours,
        peer: { name: 'emmett', rounds: figures.emmett },
        target: { kind: 'at least', ratio: 1.3, unit: 'times' },
      },
    ]
  } finally {
    await emmett.close()
    await ours.close()
  }
}

function whole(state: Timesheet): void {
  if (state.entries !== EVENTS) throw new Error(`${state.entries} events were folded instead of ${EVENTS}`)
}
