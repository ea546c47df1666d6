import { readFile } from 'node:fs/promises'
import { cpus, loadavg, totalmem } from 'node:os'
import Table from 'cli-table3'
import { type Target, verdict } from './statistics.ts'

/** One line of the result: what was done, how fast, and against what. */
export interface Row {
  readonly work: string
  readonly ours: string
  /** Who else did the same work, and how fast; null when the target is absolute. */
  readonly peer: { readonly name: string; readonly value: string } | null
  /** Ours to the peer's, more is better; null without a peer. */
  readonly ratio: number | null
  readonly target: Target
  /** The value that an absolute target is about, in its unit. */
  readonly value?: number
  readonly note?: string
}

const COLUMNS = ['work', 'ours', 'peer', 'ratio', 'target', 'verdict'] as const

/** Whether the row meets its target. */
export function verdictOf({ target, ratio, value }: Row): ReturnType<typeof verdict> {
  return verdict(target, (target.kind === 'below' ? value : ratio) ?? Number.NaN)
}

export function cells(row: Row): Record<(typeof COLUMNS)[number], string> {
  const { target, ratio } = row
  const percent = target.kind === 'at least' && target.unit === 'percent'
  return {
    work: row.note ? `${row.work} (${row.note})` : row.work,
    ours: row.ours,
    peer: row.peer ? `${row.peer.value} ${row.peer.name}` : '',
    ratio: ratio === null ? '' : percent ? `${Math.round(ratio * 100)} %` : times(ratio),
    target: targetText(target),
    verdict: verdictOf(row),
  }
}

function times(ratio: number): string {
  return `${ratio.toFixed(ratio < 10 ? 2 : 1)}x`
}

function targetText(target: Target): string {
  if (target.kind === 'none') return ''
  if (target.kind === 'below') return `< ${target.value} ${target.unit}`
  return target.unit === 'percent' ? `>= ${Math.round(target.ratio * 100)} %` : `>= ${target.ratio}x`
}

export function asTable(rows: readonly Row[]): string {
  const table = new Table({
    head: [...COLUMNS],
    style: { head: [], border: [] },
    colWidths: [46, 18, 34, 9, 10, 9],
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

export function asJson(machine: Machine, rows: readonly Row[]): string {
  const results = rows.map((row) => ({ ...row, verdict: verdictOf(row) }))
  return JSON.stringify({ machine, results }, null, 2)
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
}

/** What the numbers were measured on. */
export async function describeMachine(postgres: { version: string; fsync: string }): Promise<Machine> {
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
  }
}

/** The machine in one line. */
export function machineLine(machine: Machine): string {
  const { cores, cpu, memory_gib, load_average, kernel, node, postgres, fsync } = machine
  return (
    `${cores} cores of ${cpu}, ${memory_gib} GiB, Linux ${kernel}, Node ${node}, PostgreSQL ${postgres} ` +
    `with fsync ${fsync}; load average before the run ${load_average.toFixed(2)}`
  )
}

export const perSecond = (rate: number): string => `${Math.round(rate).toLocaleString('en-US')}/s`
export const seconds = (ms: number): string => `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`
export const mebibytes = (bytes: number): string => `${Math.round(bytes / 2 ** 20)} MiB`
