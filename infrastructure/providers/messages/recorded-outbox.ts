import type pg from 'pg'
import type { Clock } from '../../../application/ports/clock.ts'
import type { Messages, OutgoingMessage } from '../../../application/ports/messages.ts'
import type { Outbox, RecordedMessage } from '../../../application/ports/outbox.ts'
import { ERASED, type PersonalData } from '../../../application/ports/personal-data.ts'
import type { ListPage, PageRequest } from '../../../application/ports/read-database.ts'
import type { Sealed } from '../../../domain/kernel/sealed.ts'
import { plainTypes } from '../../database/plain-types.ts'

/** How long a recorded message is kept, in milliseconds. */
const KEPT_MS = 30 * 86_400_000

interface Row {
  readonly message_key: string
  readonly channel: OutgoingMessage['channel']
  readonly sealed: Sealed
  readonly at: string
}

type Content = Pick<OutgoingMessage, 'to' | 'from' | 'subject' | 'text'>

/**
 * Messages in the table `runtime.outbox`, for operators to read: where no provider is set, nothing leaves the service.
 * Each is sealed under the data key of its subject, and found by a fingerprint of its recipient.
 */
export class RecordedOutbox implements Messages, Outbox {
  readonly #pool: Pick<pg.Pool, 'query'>
  readonly #personalData: Pick<PersonalData, 'seal' | 'open' | 'fingerprint'>
  readonly #clock: Clock

  constructor(
    pool: Pick<pg.Pool, 'query'>,
    personalData: Pick<PersonalData, 'seal' | 'open' | 'fingerprint'>,
    clock: Clock,
  ) {
    this.#pool = pool
    this.#personalData = personalData
    this.#clock = clock
  }

  async send({ key, channel, to, from, subject, text, dataSubject }: OutgoingMessage): Promise<void> {
    const content: Content = { to, from, subject, text }
    const [sealed] = await this.#personalData.seal([
      { subject: dataSubject, context: contextOf(key), plaintext: JSON.stringify(content) },
    ])
    const now = this.#clock.now()
    await this.#pool.query({
      name: 'outbox/put',
      text: `INSERT INTO runtime.outbox (message_key, channel, recipient, sealed, at)
             VALUES ($1, $2, $3, $4, $5) ON CONFLICT (message_key) DO NOTHING`,
      values: [key, channel, this.#recipient(to), sealed, new Date(now)],
    })
    await this.#pool.query({
      name: 'outbox/prune',
      text: 'DELETE FROM runtime.outbox WHERE at < $1',
      values: [new Date(now - KEPT_MS)],
    })
  }

  async list(
    { channel, to }: Parameters<Outbox['list']>[0],
    { page, limit }: PageRequest,
  ): Promise<ListPage<RecordedMessage>> {
    const narrowed = '($1::text IS NULL OR channel = $1) AND ($2::text IS NULL OR recipient = $2)'
    const values = [channel, to === null ? null : this.#recipient(to)]
    const [{ rows }, counted] = await Promise.all([
      this.#pool.query<Row>({
        text: `SELECT message_key, channel, sealed, at FROM runtime.outbox WHERE ${narrowed}
               ORDER BY seq DESC LIMIT $3 OFFSET $4`,
        values: [...values, limit, (page - 1) * limit],
        types: plainTypes,
      }),
      this.#pool.query<{ total: number }>({
        text: `SELECT count(*)::int AS total FROM runtime.outbox WHERE ${narrowed}`,
        values,
      }),
    ])
    const texts = await this.#personalData.open(
      rows.map(({ message_key, sealed }) => ({ value: sealed, context: contextOf(message_key) })),
    )
    const items = rows.map(({ channel, at }, index) => ({ channel, ...contentOf(texts[index]!), at }))
    return { items, total: counted.rows[0]!.total }
  }

  #recipient(to: string): string {
    return this.#personalData.fingerprint('message_recipient', to)
  }
}

/** What a sealed message is bound to. */
function contextOf(key: string): string {
  return `outbox|${key}`
}

function contentOf(text: string): Content {
  return text === ERASED ? { to: ERASED, from: null, subject: null, text: ERASED } : JSON.parse(text)
}
