import { spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { parse, stringify } from 'yaml'
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

/** The queries of the page on scaling, without their remarks. */
async function queries(): Promise<readonly string[]> {
  const page = await readFile('docs/operators/scaling.md', 'utf8')
  const [, fenced] = /^```promql\n(.*?)^```$/ms.exec(page)!
  return fenced!.split('\n\n').map((one) => one.replaceAll(/^#.*\n/gm, '').trim())
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

  test('are not all that is asked: the page on scaling names metrics in queries alone, and the service has them', async () => {
    const known = await metricNames()
    const asked = await queries()
    const names = asked.flatMap(named)
    expect(names.length).toBeGreaterThanOrEqual(asked.length)
    expect(names.filter((name) => !known.has(name))).toEqual([])
    const page = await readFile('docs/operators/scaling.md', 'utf8')
    expect(named(page).sort()).toEqual(names.sort())
  })

  test.skipIf(!promtool)(
    'have the form that Prometheus reads, and so have the queries of the page on scaling (needs promtool)',
    async () => {
      const rules = (await queries()).map((expr, index) => ({ record: `query:${index}`, expr }))
      const folder = await mkdtemp(join(tmpdir(), 'queries-'))
      onTestFinished(() => rm(folder, { recursive: true }))
      const file = join(folder, 'queries.yml')
      await writeFile(file, stringify({ groups: [{ name: 'queries', rules }] }))
      const { status, stdout, stderr } = spawnSync('promtool', ['check', 'rules', RULES, file])
      expect([status, `${stdout}${stderr}`]).toEqual([
        0,
        expect.stringContaining(`${rules.length} rules found`),
      ])
    },
  )

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
