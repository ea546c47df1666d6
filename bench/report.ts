import { readFile } from 'node:fs/promises'
import { cpus, totalmem } from 'node:os'
import Table from 'cli-table3'
import { type Target, verdict } from './statistics.ts'

/** One line of the result: what was done, how fast, and against what. */
export interface Row {
  readonly work: string
  readonly ours: string
  /** Who else did the same work, and how fast; null when the target is absolute. */
  readonly peer: { readonly name: string; readonly value: string } | null
  readonly target: Target
  /** Ours to the peer's, more is better; of absolute targets the value in the target's unit. */
  readonly value: number
  readonly note?: string
}

const COLUMNS = ['work', 'ours', 'peer', 'ratio', 'target', 'verdict'] as const

export function cells(row: Row): Record<(typeof COLUMNS)[number], string> {
  const { target, value } = row
  const percent = target.kind === 'at least' && target.unit === 'percent'
  const ratio = percent ? `${Math.round(value * 100)} %` : `${value.toFixed(value < 10 ? 2 : 1)}x`
  return {
    work: row.note ? `${row.work} (${row.note})` : row.work,
    ours: row.ours,
    peer: row.peer ? `${row.peer.value} ${row.peer.name}` : '',
    ratio: row.peer ? ratio : '',
    target: targetText(target),
    verdict: verdict(target, value),
  }
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
  const results = rows.map((row) => ({ ...row, verdict: verdict(row.target, row.value) }))
  return JSON.stringify({ machine, results }, null, 2)
}

export interface Machine {
  readonly cores: number
  readonly cpu: string
  readonly memory_gib: number
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
    kernel: kernel.trim(),
    node: process.version,
    postgres: postgres.version,
    fsync: postgres.fsync,
  }
}

export const perSecond = (rate: number): string => `${Math.round(rate).toLocaleString('en-US')}/s`
export const seconds = (ms: number): string => `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`
export const mebibytes = (bytes: number): string => `${Math.round(bytes / 2 ** 20)} MiB`
