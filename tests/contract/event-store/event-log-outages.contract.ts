import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  type EventLog,
  LOG_START,
  type LogPage,
  type StoredEvent,
} from '../../../application/ports/event-log.ts'
import { anEvent, aStream, expectIntactChains, type LogUnderTest, someEvents } from './event-log.contract.ts'

/** A log whose server can fail. */
export interface FailingLog extends LogUnderTest {
  /** Ways in which the server goes away; each resolves when it is back. */
  readonly outages: readonly { readonly name: string; readonly happen: () => Promise<void> }[]
}

const LIMIT_MS = 600_000

/**
 * What every event log adapter must do when its server goes away and comes back. The adapters' patience must be longer
 * than the outages.
 * @param names of the outages, known before the server is started.
 */
export function outageContract(
  name: string,
  names: readonly string[],
  create: () => Promise<FailingLog>,
): void {
  describe(`event log contract, outages: ${name}`, () => {
    let underTest: FailingLog
    let log: EventLog
    let other: EventLog
    const happen = (outage: string) => underTest.outages.find((one) => one.name === outage)!.happen()

    beforeAll(async () => {
      underTest = await create()
      log = await underTest.open()
      other = await underTest.open()
    })
    afterAll(async () => {
      await log?.close()
      await other?.close()
      await underTest?.remove()
    })

    describe.each(names)('the server is %s', (outage) => {
      // a server that is killed loses the most
      const tags = outage === 'killed' ? [] : 'long'
      test('during many concurrent appends that are followed live', { timeout: LIMIT_MS, tags }, async () => {
        const after = await log.head()
        const type = `Rare${aStream()}`
        const isLast = (events: readonly StoredEvent[]) => events.at(-1)?.type === type
        const followers = [
          deliver(log, { after, pageSize: 500 }, isLast),
          deliver(log, { after, pageSize: 3 }, isLast),
          deliver(other, { after, pageSize: 100 }, isLast),
        ]
        const rare = deliver(other, { after, pageSize: 10, types: [type] }, isLast)
        const acknowledged = new Map<string, { revision: number; position: bigint }>()
        let appends = 0
        let running = true
        const lanes = Array.from({ length: 30 }, async (_, lane) => {
          const stream = aStream()
          const writer = lane % 3 === 0 ? other : log
          const size = 1 + (lane % 4)
          for (let revision = -1; running; revision += size) {
            const { position } = await writer.append(stream, revision, someEvents(size))
            acknowledged.set(stream, { revision: revision + size, position })
            appends += 1
          }
        })
        // failures are told below
        for (const one of [...lanes, ...followers, rare]) (one as Promise<unknown>).catch(() => undefined)
        const beyond = (count: number) =>
          vi.waitUntil(() => appends >= count, { timeout: LIMIT_MS, interval: 5 })
        try {
          await beyond(200)
          await happen(outage)
          await beyond(appends + 200)
          // whoever begins to follow while the server is away gets everything as well
          const away = happen(outage)
          const joining = deliver(other, { after, pageSize: 50 }, isLast)
          joining.catch(() => undefined)
          followers.push(joining)
          await away
        } finally {
          running = false
        }
        await Promise.all(lanes)
        await log.append(aStream(), -1, [anEvent({ type })])

        const stored = (await deliver(log, { after, pageSize: 1000 }, isLast)).filter(
          (event) => event.type !== type,
        )
        expectIntactChains(stored)
        const perStream = new Map<string, number>()
        for (const { stream } of stored) perStream.set(stream, (perStream.get(stream) ?? 0) + 1)
        // no more and no less than what was acknowledged
        expect([...perStream].sort()).toEqual(
          [...acknowledged].map(([stream, { revision }]) => [stream, revision + 1]).sort(),
        )
        const positions = new Map(
          stored.map(({ stream, revision, position }) => [`${revision}@${stream}`, position]),
        )
        for (const [stream, { revision, position }] of acknowledged) {
          expect(positions.get(`${revision}@${stream}`)).toBe(position)
        }
        for (const events of await Promise.all(followers)) {
          expect(events.slice(0, -1).map(placeOf)).toEqual(stored.map(placeOf))
        }
        expect(await rare).toHaveLength(1)
      })

      test('during catching up with many events, quickly and slowly', {
        timeout: LIMIT_MS,
        tags,
      }, async () => {
        const after = await log.head()
        const [streams, appends, size] = [20, 10, 20]
        await Promise.all(
          Array.from({ length: streams }, async () => {
            const stream = aStream()
            for (let n = 0; n < appends; n += 1) await log.append(stream, n * size - 1, someEvents(size))
          }),
        )
        const total = streams * appends * size
        // one that was not there when they were written has none of them in memory
        const fresh = await underTest.open()
        try {
          let away: Promise<void> | undefined
          const quick = deliver(fresh, { after, pageSize: 50 }, (events) => {
            if (events.length > total / 10) away ??= happen(outage)
            return events.length >= total
          })
          const slow = deliver(fresh, { after, pageSize: 200 }, async (events) => {
            // holds its page until the server has come back
            if (events.length > total / 4) await away
            return events.length >= total
          })
          const [first, second] = await Promise.all([quick, slow])
          await away
          expect(away).toBeDefined()
          expect(first).toHaveLength(total)
          expectIntactChains(first)
          expect(second.map(placeOf)).toEqual(first.map(placeOf))
        } finally {
          await fresh.close()
        }
      })

      test('while streams and the log are read, and nobody has to know', {
        timeout: LIMIT_MS,
        tags,
      }, async () => {
        const stream = aStream()
        await log.append(stream, -1, someEvents(50))
        const after = (await log.readStream(stream))[0]!.position
        let away = true
        const outcome = happen(outage).finally(() => {
          away = false
        })
        let reads = 0
        const readers = Array.from({ length: 6 }, async (_, n) => {
          for (let last = false; !last; reads += 1) {
            // once more when the server is back
            last = !away
            if (n % 3 === 0) expect(await log.readStream(stream)).toHaveLength(50)
            else if (n % 3 === 1) expect((await log.readAll({ after, maxCount: 49 })).events).toHaveLength(49)
            else expect(await log.head()).toBeGreaterThan(after)
          }
        })
        await Promise.all([outcome, ...readers])
        expect(reads).toBeGreaterThanOrEqual(6)
      })
    })
  })
}

/** Follows until `done` says so. @returns everything that was delivered, in the order of delivery. */
async function deliver(
  log: EventLog,
  options: { after?: bigint; types?: readonly string[]; pageSize: number },
  done: (events: readonly StoredEvent[], page: LogPage) => boolean | Promise<boolean>,
): Promise<StoredEvent[]> {
  const signal = AbortSignal.timeout(LIMIT_MS)
  const events: StoredEvent[] = []
  for await (const page of log.subscribe({ after: LOG_START, ...options, signal })) {
    events.push(...page.events)
    if (await done(events, page)) return events
  }
  throw new Error(`The subscription delivered only ${events.length} events`)
}

function placeOf({ position, stream, revision, eventId }: StoredEvent): string {
  return `${position} ${revision}@${stream} ${eventId}`
}
