import type { ClientBase } from 'pg'

/** A transaction had a statement that failed, and whose failure was caught: the server rolled it back at the commit. */
export class RolledBack extends Error {
  override readonly name = 'RolledBack'
  constructor() {
    super('The transaction was rolled back: a statement in it had failed')
  }
}

/**
 * Runs `work` in a transaction: commits when it resolves, rolls back when it throws. All transactions are committed here.
 * @param mode default read committed.
 * @throws RolledBack when nothing was stored although it resolved.
 */
export async function inTransaction<T>(
  client: Pick<ClientBase, 'query'>,
  work: () => Promise<T>,
  mode: 'READ COMMITTED' | 'REPEATABLE READ READ ONLY' = 'READ COMMITTED',
): Promise<T> {
  await client.query(`BEGIN ISOLATION LEVEL ${mode}`)
  try {
    const result = await work()
    // of a transaction that has failed the server answers ROLLBACK, and no error
    if ((await client.query('COMMIT')).command !== 'COMMIT') throw new RolledBack()
    return result
  } catch (error) {
    // when the connection is gone the server rolls back by itself
    await client.query('ROLLBACK').catch(() => undefined)
    throw error
  }
}
