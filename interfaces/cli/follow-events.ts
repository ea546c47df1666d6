import { setTimeout as delay } from 'node:timers/promises'
import type { Called } from './endpoint-commands.ts'
import { outputOf } from './endpoint-commands.ts'
import { UsageError } from './io.ts'
import { type Output, printable } from './output.ts'
import { untilStopped } from './verbs.ts'

const LOOK_MS = 1000
/** Characters of the data of an event on its line. */
const SHOWN = 200

interface Event {
  readonly position: string
  readonly stream: string
  readonly revision: number
  readonly type: string
  readonly recorded_at: string | null
  readonly data: unknown
  readonly metadata: { readonly actor?: { readonly type?: string; readonly id?: string } }
}

/** Lists events; with `--follow` all pages, and then each event as it comes, a line for each, until it is stopped. */
export async function listEvents(called: Called<{ readonly follow?: boolean }>): Promise<Output> {
  const { client, endpoint, input, options } = called
  if (!options.follow) return outputOf(endpoint, await client().call(endpoint, input))
  if (input.query.to_time !== undefined) throw new UsageError('--follow has no end: leave --to-time out.')
  if (input.query.reveal)
    throw new UsageError('--reveal is recorded each time: it does not go with --follow.')
  return untilStopped((signal) => follow(called, signal))
}

/** @param signal ends it. */
export async function follow(
  { io, client, endpoint, input, options }: Called<object>,
  signal: AbortSignal,
): Promise<Output> {
  const operator = client()
  let from = input.query.from
  let shown = 0
  while (!signal.aborted) {
    const query = { ...input.query, ...(from === undefined ? {} : { from }) }
    const { data, pagination } = await operator.call(endpoint, { ...input, query })
    for (const event of data as readonly Event[]) {
      io.stdout.write(`${options.json ? JSON.stringify(event) : lineOf(event)}\n`)
      shown += 1
    }
    const { next, read_to } = pagination as { readonly next: string | null; readonly read_to: string }
    from = next ?? read_to
    if (next === null) await delay(LOOK_MS, undefined, { signal }).catch(() => undefined)
  }
  return { json: { shown }, text: `${shown} shown` }
}

function lineOf({ position, stream, revision, type, recorded_at, data, metadata }: Event): string {
  const { type: kind = '–', id = '–' } = metadata.actor ?? {}
  const text = JSON.stringify(data)
  const short = text.length > SHOWN ? `${text.slice(0, SHOWN - 1)}…` : text
  return printable(
    [position, recorded_at ?? '–', type, `${stream}@${revision}`, `${kind}/${id}`, short].join('  '),
  )
}
