import { setTimeout as delay } from 'node:timers/promises'
import type { z } from 'zod'
import type { Projection, ProjectionWithDeadLetters } from '../operator-api/host/projection-schemas.ts'
import { projectionEndpoints } from '../operator-api/operations/projections.ts'
import type { Called } from './endpoint-commands.ts'
import { CliError } from './io.ts'
import { type Output, printable, resource } from './output.ts'
import { Progress } from './progress.ts'

const LOOK_MS = 500

type Shown = z.output<typeof ProjectionWithDeadLetters>
type Rebuild = NonNullable<z.output<typeof Projection>['rebuild']>
type Comparison = NonNullable<Rebuild['comparison']>
type Table = Comparison['tables'][number]

const show = projectionEndpoints.find(({ operation }) => operation === 'showProjection')!

/** Shows a projection, and below it how a rebuild compares with what answers. */
export async function showProjection({ client, endpoint, input }: Called<object>): Promise<Output> {
  return outputOf((await client().call(endpoint, input)).data as Shown)
}

/** Starts a rebuild; with `--follow` shows how far it is until it has gone live, waits for its switch, or has failed. */
export async function rebuildProjection(
  called: Called<{ readonly follow?: boolean; readonly watch?: boolean }>,
): Promise<Output> {
  const { io, client, endpoint, input, options } = called
  const operator = client()
  const started = (await operator.call(endpoint, input)).data as { readonly generation: number }
  if (!options.follow && !options.watch) return resource(started)
  const progress = new Progress(io, { lines: !options.json })
  try {
    for (;;) {
      const shown = (await operator.call(show, { params: input.params, query: {} })).data as Shown
      const outcome = outcomeOf(shown, started.generation, input.body?.switch === 'manual')
      if (outcome) return outcome
      showProgress(progress, shown.rebuild!)
      await delay(LOOK_MS)
    }
  } finally {
    progress.stop()
  }
}

function showProgress(progress: Progress, rebuild: Rebuild): void {
  const { position, head, events_left, events_per_second, seconds_left } = rebuild
  if (events_left === 0) {
    progress.show('comparing at position', { done: position })
    return
  }
  const left = seconds_left === null ? '' : `, ${Math.ceil(seconds_left)} s left`
  const note = `${events_left} events to go, ${Math.round(events_per_second)} events/s${left}`
  progress.show('rebuilding', { done: position, total: head, note })
}

/** What became of a rebuild; null while it goes on. */
function outcomeOf(shown: Shown, generation: number, isManual: boolean): Output | null {
  const { name, rebuild, retired } = shown
  const ended = (words: string, failure?: CliError): Output => {
    const { json, text } = outputOf(shown)
    return { json, text: [text, words].filter(Boolean).join('\n'), ...(failure && { failure }) }
  }
  const failed = (words: string) => new CliError(words, { error: 'Rebuild' })
  if (shown.generation === generation) {
    return ended(`Done: generation ${generation} of ${name} answers, version ${shown.version}.`)
  }
  if (rebuild?.generation !== generation) {
    const what = retired?.generation === generation ? 'switched to and rolled back' : 'cancelled'
    return ended('', failed(`The rebuild was ${what} while it was followed.`))
  }
  if (shown.state === 'paused') {
    return ended('', failed(`The projection is paused: projections resume ${name} lets the rebuild go on.`))
  }
  if (rebuild.failure) return ended('', failed(`The rebuild failed: ${rebuild.failure.message}`))
  if (rebuild.switch === 'auto' || rebuild.comparison === null) return null
  const next = `projections switch ${name}, or projections cancel ${name}`
  if (isManual) return ended(`Done: generation ${generation} of ${name} waits for: ${next}.`)
  const lost = rebuild.parked_streams > shown.parked_streams
  const why = lost ? 'it has dead-lettered streams that the live one has not' : 'its rows differ'
  return ended('', failed(`The rebuild does not switch by itself: ${why}. Look, then: ${next}.`))
}

function outputOf(shown: Shown): Output {
  const { rebuild, retired } = shown
  const compared = rebuild ? rebuild.comparison : retired?.comparison
  if (!compared) return resource(shown)
  const { text } = resource({
    ...shown,
    rebuild: rebuild && { ...rebuild, comparison: 'below' },
    retired: retired && { ...retired, comparison: rebuild ? 'before the switch' : 'below' },
  })
  return { json: shown, text: `${text}\n${comparisonText(compared)}` }
}

/** How live and rebuilt tables compare: counts, digests, and the differing rows column by column. */
function comparisonText({ position, equal, tables }: Comparison): string {
  const lines = tables.flatMap((one) => {
    const { differing_rows: rows, differences = [] } = one
    const contents = ({ rows, hash }: Table['live']) => `${rows} rows, digest ${hash}`
    const how = one.equal ? 'equal' : rows === undefined ? 'not equal' : `rows that differ: ${rows}`
    const shown = rows === undefined || rows === differences.length ? '' : `, shown: ${differences.length}`
    return [
      `${one.table}: ${how}${shown}`,
      `  live     ${contents(one.live)}`,
      `  rebuilt  ${contents(one.shadow)}`,
      ...differences.flatMap(differenceLines),
    ]
  })
  const words = `Compared at position ${position}: ${equal ? 'equal' : 'not equal; columns read live → rebuilt'}.`
  // a value may hold lines of its own
  return [words, ...lines].map((line) => printable(line.replaceAll('\n', '\ufffd'))).join('\n')
}

function differenceLines({ key, missing_in, columns }: NonNullable<Table['differences']>[number]): string[] {
  const missing = missing_in && `, no row in the ${missing_in === 'live' ? 'live' : 'rebuilt'} table`
  const keys = Object.entries(key).map((part) => part.join(' '))
  return [
    `  ${keys.join(', ')}${missing ?? ''}`,
    ...columns.map(({ column, live, shadow }) => `    ${column}: ${live ?? '–'} → ${shadow ?? '–'}`),
  ]
}
