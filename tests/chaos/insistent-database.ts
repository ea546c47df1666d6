import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'

const AGAIN_MS = 100

/**
 * Asks a database that may be down just then, or go away meanwhile, until it has answered.
 * @param url where it is at the moment; undefined: nowhere.
 */
export async function insistOnDatabase<T>(
  url: () => string | undefined,
  ask: (client: pg.Client) => Promise<T>,
): Promise<T> {
  for (;;) {
    const connectionString = url()
    const client = connectionString === undefined ? null : new pg.Client(connectionString)
    client?.on('error', () => undefined)
    try {
      await client?.connect()
      if (client) return await ask(client)
    } catch (error) {
      if (!isGone(error as Error)) throw error
    } finally {
      await client?.end().catch(() => undefined)
    }
    await delay(AGAIN_MS)
  }
}

function isGone({ code, message }: Error & { readonly code?: string }): boolean {
  return /^(ECONN|EPIPE|57P|08)/.test(code ?? '') || message.includes('terminated')
}
