import { spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { Metrics } from '../../../infrastructure/telemetry/metrics.ts'

const RULES = 'deploy/prometheus/rules.yml'
const promtool = spawnSync('promtool', ['--version']).status === 0

interface Rules {
  readonly groups: readonly {
    readonly rules: readonly {
      readonly alert: string
      readonly expr: string
      readonly annotations: { readonly runbook: string }
    }[]
  }[]
}

/** The names of all metrics, those too that only some installations have. */
async function metricNames(): Promise<ReadonlySet<string>> {
  const metrics = new Metrics()
  metrics.nats(true)
  metrics.bankFolders(['outbox'], [])
  metrics.integrationEvent('type')
  metrics.integrationEventsBehind(0)
  metrics.clockSkew(0)
  metrics.diskWaits({ syncs: 1, seconds: 1 })
  metrics.backupAge(0)
  metrics.covered(true)
  const described = (await metrics.text()).matchAll(/^# TYPE (\w+) (\w+)$/gm)
  const parts = { histogram: ['_bucket', '_count', '_sum'] } as Readonly<Record<string, readonly string[]>>
  return new Set(
    [...described].flatMap(([, name, kind]) => (parts[kind!] ?? ['']).map((part) => name! + part)),
  )
}

const named = (expression: string): string[] => expression.match(/\bcompstream_\w+/g) ?? []

describe('alert rules for Prometheus', () => {
  test('name metrics that the service has, and so does the dashboard', async () => {
    const known = await metricNames()
    const dashboard = JSON.parse(await readFile('deploy/grafana/compstream.json', 'utf8')) as {
      readonly panels: readonly { readonly targets?: readonly { readonly expr: string }[] }[]
    }
    const { groups } = parse(await readFile(RULES, 'utf8')) as Rules
    const expressions = [
      ...groups.flatMap(({ rules }) => rules.map(({ expr }) => expr)),
      ...dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
    ]
    const names = expressions.flatMap(named)
    expect(names.length).toBeGreaterThan(30)
    expect(names.filter((name) => !known.has(name))).toEqual([])
  })

  test('each lead to their own section of the runbook', async () => {
    const { groups } = parse(await readFile(RULES, 'utf8')) as Rules
    for (const { alert, annotations } of groups.flatMap(({ rules }) => rules)) {
      const [page, section] = annotations.runbook.split('#')
      expect(section).toBe(alert.toLowerCase())
      expect(await readFile(page!, 'utf8')).toMatch(new RegExp(`^### ${alert}$`, 'm'))
    }
  })

  test.skipIf(!promtool)('are raised by what they are for and by nothing less (needs promtool)', () => {
    const { status, stdout, stderr } = spawnSync('promtool', [
      'test',
      'rules',
      'deploy/prometheus/rules.test.yml',
    ])
    expect(`${stdout}${stderr}`).toContain('SUCCESS')
    expect(status).toBe(0)
  })
})
