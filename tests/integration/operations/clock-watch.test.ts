// @module-tag once: its subject is the same whatever holds the log
import { expect, test } from 'vitest'
import { recordClock } from '../../../application/operations/machinery-alerts.ts'
import { ClockWatch } from '../../../infrastructure/clock/clock-watch.ts'
import { SystemRandomness } from '../../../infrastructure/randomness.ts'
import { Metrics } from '../../../infrastructure/telemetry/metrics.ts'
import { createTestDatabase } from '../../support/database.ts'
import { newId } from '../../support/payroll.ts'
import { openWorkbench } from '../../support/workbench.ts'

test("a clock that differs from PostgreSQL's by more than 5 seconds calls a person until it agrees", async () => {
  const database = await createTestDatabase()
  const bench = await openWorkbench(database.url)
  const metrics = new Metrics({ process: false })
  const processId = newId()
  let aheadMs = 0
  const failures: unknown[] = []
  const watch = new ClockWatch({
    pool: bench.database.leases,
    now: () => Date.now() + aheadMs,
    measured: (ms) => metrics.clockSkew(ms),
    differs: (ms) =>
      recordClock(
        { commands: bench.commands, randomness: new SystemRandomness(bench.clock) },
        { process_id: processId, skew_ms: ms },
      ),
    failed: (error) => failures.push(error),
  })
  const events = async () =>
    (await bench.log.readStream(`processClock-${processId}`)).map(({ type, data }) => [
      type,
      Math.sign(JSON.parse(data).skew_ms),
    ])
  const figure = async () => Number(/^compstream_clock_skew_seconds (\S+)$/m.exec(await metrics.text())?.[1])
  try {
    await watch.look()
    expect(await figure()).toBe(0)
    expect(await events()).toEqual([])

    // a loaded machine takes its time for the answer, which is no difference of clocks
    aheadMs = 3_600_000
    for (let looks = 0; looks < 2; looks += 1) await watch.look()
    expect(Math.round((await figure()) / 60)).toBe(60)
    expect(await events()).toEqual([['ProcessClockDiffered', 1]])

    aheadMs = 0
    await watch.look()
    aheadMs = -3_600_000
    await watch.look()
    expect(Math.round((await figure()) / 60)).toBe(-60)
    expect(await events()).toEqual([
      ['ProcessClockDiffered', 1],
      ['ProcessClockAgreed', 0],
      ['ProcessClockDiffered', -1],
    ])
    expect(failures).toEqual([])
  } finally {
    watch.stop()
    await bench.close()
    await database.drop()
  }
})
