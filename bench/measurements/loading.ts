import { CommandHandler } from '../../application/command-handling/command-handler.ts'
import { openEmmett } from '../peers/emmett.ts'
import { perSecond, type Row } from '../report.ts'
import { type BenchServer, openOurLog } from '../servers.ts'
import { inTurns, throughput } from '../statistics.ts'
import { encodedEvents, idOf, registry, type Timesheet, timesheet } from '../timesheets.ts'

const ROUNDS = 5
const STREAMS = 2_000
const EVENTS = 20
const LOADS = 6_000
const AT_ONCE = 16

/** Reading, decoding and folding a stream, nothing cached. */
export async function measureLoading(server: BenchServer): Promise<Row[]> {
  const ours = await openOurLog(await server.createDatabase('loading'))
  const emmett = await openEmmett(await server.createDatabase('loading_emmett'))
  try {
    const stream = (index: number) => idOf(`stream ${index % STREAMS}`)
    await throughput(STREAMS, 32, (index) =>
      ours.log.append(`timesheet-${stream(index)}`, 'noStream', encodedEvents(stream(index), EVENTS)),
    )
    await throughput(STREAMS, 8, (index) => emmett.append(stream(index), EVENTS))
    // loadAt keeps nothing, so that a handler used for nothing else reads every time
    const handler = new CommandHandler(ours.log, registry, { kind: 'system', now: () => 0 })
    const load = async (index: number) =>
      whole((await handler.loadAt(timesheet, stream(index), EVENTS - 1)).state)
    const loadEmmett = async (index: number) => whole(await emmett.load(stream(index)))
    await throughput(LOADS / 4, AT_ONCE, load)
    await throughput(LOADS / 4, AT_ONCE, loadEmmett)
    const rates = await inTurns(ROUNDS, {
      ours: () => throughput(LOADS, AT_ONCE, load),
      emmett: () => throughput(LOADS, AT_ONCE, loadEmmett),
    })
    return [
      {
        work: `load of an aggregate of ${EVENTS} events, ${AT_ONCE} at once`,
        ours: perSecond(rates.ours),
        peer: { name: 'emmett', value: perSecond(rates.emmett) },
        target: { kind: 'at least', ratio: 1.3, unit: 'times' },
        ratio: rates.ours / rates.emmett,
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
