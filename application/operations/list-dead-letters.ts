import type { Application } from '../commands/application.ts'
import type { DeadLetter, DeadLetterScope, DeadLetters } from '../ports/dead-letters.ts'
import type { ListPage, PageRequest } from '../ports/read-database.ts'

interface ShownDeadLetter extends DeadLetter {
  /** Type and id of the event; null: the log has it no longer. */
  readonly type: string | null
  readonly event_id: string | null
  /** Events of the stream behind it, those included that do not concern the reader. */
  readonly waiting: number
}

/** Streams of which events are read at a time. */
const READ_AT_ONCE = 4

/** Streams that wait, with the event that each waits behind and what waits there. */
export async function listDeadLetters(
  { log }: Pick<Application, 'log'>,
  deadLetters: DeadLetters,
  scope: DeadLetterScope,
  page: PageRequest,
): Promise<ListPage<ShownDeadLetter>> {
  const { items, total } = await deadLetters.list(scope, page)
  const shown: ShownDeadLetter[] = []
  // events may be large, and the connections that read them are everybody's
  for (let from = 0; from < items.length; from += READ_AT_ONCE) {
    shown.push(...(await Promise.all(items.slice(from, from + READ_AT_ONCE).map((one) => show(log, one)))))
  }
  return { items: shown, total }
}

async function show(log: Application['log'], one: DeadLetter): Promise<ShownDeadLetter> {
  const [[found], [last]] = await Promise.all([
    log.readStream(one.stream, { from: one.revision, maxCount: 1 }),
    log.readStream(one.stream, { direction: 'backwards', maxCount: 1 }),
  ])
  // a stream may have been cut before that event
  const event = found?.revision === one.revision ? found : undefined
  return {
    ...one,
    type: event?.type ?? null,
    event_id: event?.eventId ?? null,
    waiting: Math.max(0, (last?.revision ?? one.revision) - one.revision),
  }
}
