import { expect, test } from 'vitest'
import { Metrics } from '../../../infrastructure/telemetry/metrics.ts'

test('projections that are not known take away their own dead-lettered streams, not those of other readers', async () => {
  const metrics = new Metrics({ process: false })
  const lag = { events: 0, seconds: 0 }
  metrics.projections([
    { name: 'employers', state: 'parked', owner: 'a', lag, parked_streams: 2, rebuild: null },
  ])
  metrics.deadLettered('integration-events', 1)
  const shown = async () => (await metrics.text()).match(/^compstream_dead_lettered_streams.*$/gm) ?? []
  expect(await shown()).toHaveLength(2)
  metrics.projections(null)
  expect(await shown()).toEqual(['compstream_dead_lettered_streams{reader="integration-events"} 1'])
  expect(await metrics.text()).not.toContain('projection="employers"')
})

test('what a commit waits for the disk is a count that PostgreSQL keeps, and absent where it does not tell', async () => {
  const metrics = new Metrics({ process: false })
  const shown = async () => (await metrics.text()).match(/^compstream_database_disk.*$/gm) ?? []
  expect(await shown()).toEqual([])
  metrics.diskWaits({ syncs: 7, seconds: 0.5 })
  metrics.diskWaits({ syncs: 9, seconds: 0.75 })
  expect(await shown()).toEqual([
    'compstream_database_disk_syncs_total 9',
    'compstream_database_disk_sync_seconds_total 0.75',
  ])
  metrics.diskWaits({ syncs: 9, seconds: null })
  expect(await shown()).toEqual(['compstream_database_disk_syncs_total 9'])
  metrics.diskWaits(null)
  expect(await shown()).toEqual([])
})

test('what becomes of webhooks is counted from 0, so that the first dropped one is an increase', async () => {
  const text = await new Metrics({ process: false }).text()
  for (const outcome of ['dropped', 'missed']) {
    expect(text).toContain(`compstream_webhook_deliveries_total{outcome="${outcome}"} 0`)
  }
})
