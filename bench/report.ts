import { readFile } from 'node:fs/promises'
import { cpus, loadavg, totalmem } from 'node:os'
import Table from 'cli-table3'
import { type Beside, type Figure, median, type Spread, spread, type Target, verdict } from './statistics.ts'

export type Unit = 'per second' | 'rows per second' | 'ms' | 's' | 'MiB'

/** One line of the result: what was done, how fast in each round, and against what. */
export interface Row {
  readonly work: string
  readonly unit: Unit
  readonly ours: readonly Figure[]
  /** Who else did the same work, round by round; null when nobody did. */
  readonly peer: { readonly name: string; readonly rounds: readonly Figure[] } | null
  readonly target: Target
  readonly note?: string
}

const COLUMNS = ['work', 'ours', 'peer', 'ratio', 'all rounds', 'target', 'verdict'] as const

/** What the target is held against, of each round: ratios to the peer, or of absolute targets what was measured. */
function judged({ ours, peer, target }: Row): number[] {
  if (target.kind === 'below' || peer === null) return ours.map(({ value }) => value)
  return ours.map(({ value }, round) => value / peer.rounds[round]!.value)
}

/** Whether the row meets its target by all of its rounds. */
function verdictOf(row: Row): ReturnType<typeof verdict> {
  return verdict(row.target, judged(row))
}

/** Puts the rounds of several runs together: rows of the same work against the same peer are one. */
export function pooled(rows: readonly Row[]): Row[] {
  const byWork = new Map<string, Row>()
  for (const row of rows) {
    const key = JSON.stringify([row.work, row.peer?.name, row.target])
    const known = byWork.get(key)
    if (!known) {
      byWork.set(key, row)
      continue
    }
    const rounds = [...(known.peer?.rounds ?? []), ...(row.peer?.rounds ?? [])]
    byWork.set(key, {
      ...row,
      ours: [...known.ours, ...row.ours],
      peer: row.peer && { name: row.peer.name, rounds },
    })
  }
  return [...byWork.values()]
}

export function cells(row: Row): Record<(typeof COLUMNS)[number], string> {
  const { target, peer, unit } = row
  const range = spread(judged(row))
  const isAbsolute = target.kind === 'below' || peer === null
  const write = isAbsolute
    ? (value: number) => amount(value, unit)
    : (value: number) => ratioText(value, target)
  return {
    work: row.note ? `${row.work} (${row.note})` : row.work,
    ours: measured(row.ours, unit),
    peer: peer ? `${measured(peer.rounds, unit)} ${peer.name}` : '',
    ratio: isAbsolute ? '' : write(range.median),
    'all rounds': rangeText(range, write),
    target: targetText(target, unit),
    verdict: verdictOf(row),
  }
}

function rangeText({ lowest, highest }: Spread, write: (value: number) => string): string {
  return `${write(lowest)} to ${write(highest)}`
}

/** The median of the rounds, and beside it the medians of what else was told. */
function measured(rounds: readonly Figure[], unit: Unit): string {
  const beside = ['p50', 'p99', 'served', 'refused', 'lost'] as const
  const words = beside.flatMap((name) => {
    const values = rounds.flatMap((round) => round[name] ?? [])
    return values.length === 0 ? [] : [besideText(name, median(values))]
  })
  return [amount(median(rounds.map(({ value }) => value)), unit), ...words].join(', ')
}

function besideText(name: keyof Beside, value: number): string {
  return name === 'p50' || name === 'p99'
    ? `${name} ${amount(value, 'ms')}`
    : `${amount(value, 'per second')} ${name}`
}

/** A figure with its unit. */
export function amount(value: number, unit: Unit): string {
  const whole = Math.round(value).toLocaleString('en-US')
  switch (unit) {
    case 'per second':
      return `${whole}/s`
    case 'rows per second':
      return `${whole} rows/s`
    case 'ms':
      return value < 10 ? `${value.toFixed(1)} ms` : `${whole} ms`
    case 's':
      return `${value.toFixed(value < 10 ? 2 : 1)} s`
    case 'MiB':
      return `${whole} MiB`
  }
}

function ratioText(ratio: number, target: Target): string {
  if (target.kind === 'at least' && target.unit === 'percent') return `${Math.round(ratio * 100)} %`
  return `${ratio.toFixed(ratio < 10 ? 2 : 1)}x`
}

function targetText(target: Target, unit: Unit): string {
  switch (target.kind) {
    case 'none':
      return ''
    case 'below':
      return `< ${target.value} ${unit}`
    case 'at most':
      return `<= ${target.ratio}x`
    case 'at least':
      return target.unit === 'percent' ? `>= ${Math.round(target.ratio * 100)} %` : `>= ${target.ratio}x`
  }
}

export function asTable(rows: readonly Row[]): string {
  const table = new Table({
    head: [...COLUMNS],
    style: { head: [], border: [] },
    colWidths: [42, 20, 34, 9, 18, 10, 11],
    wordWrap: true,
  })
  for (const row of rows) table.push(Object.values(cells(row)))
  return table.toString()
}

export function asMarkdown(rows: readonly Row[]): string {
  const line = (values: readonly string[]) => `| ${values.join(' | ')} |`
  return [
    line(COLUMNS),
    line(COLUMNS.map(() => '---')),
    ...rows.map((row) => line(Object.values(cells(row)))),
  ].join('\n')
}

/** What `--json` prints and `--print` reads: every round of every row, and what they come to. */
export interface Results {
  readonly machines: readonly Machine[]
  readonly results: readonly Row[]
}

export function asJson({ machines, results }: Results): string {
  const judgedRows = results.map((row) => ({ ...row, judged: spread(judged(row)), verdict: verdictOf(row) }))
  return JSON.stringify({ machines, results: judgedRows }, null, 2)
}

export interface Machine {
  readonly cores: number
  readonly cpu: string
  readonly memory_gib: number
  /** Of the minute before the first measurement: what else the machine was doing. */
  readonly load_average: number
  readonly kernel: string
  readonly node: string
  readonly postgres: string
  readonly fsync: string
  /** True: so little was done that the figures mean nothing. */
  readonly quick: boolean
}

/** What the numbers were measured on. */
export async function describeMachine(
  postgres: { version: string; fsync: string },
  quick: boolean,
): Promise<Machine> {
  const kernel = await readFile('/proc/sys/kernel/osrelease', 'utf8').catch(() => process.platform)
  return {
    cores: cpus().length,
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    memory_gib: Math.round(totalmem() / 2 ** 30),
    load_average: loadavg()[0] ?? 0,
    kernel: kernel.trim(),
    node: process.version,
    postgres: postgres.version,
    fsync: postgres.fsync,
    quick,
  }
}

/** The machine in one line. */
export function machineLine(machine: Machine): string {
  const { cores, cpu, memory_gib, load_average, kernel, node, postgres, fsync, quick } = machine
  return (
    `${cores} cores of ${cpu}, ${memory_gib} GiB, Linux ${kernel}, Node ${node}, PostgreSQL ${postgres} ` +
    `with fsync ${fsync}; load average before the run ${load_average.toFixed(2)}` +
    (quick ? '; a quick run, whose figures mean nothing' : '')
  )
}
