import type { Pool, QueryConfig } from 'pg'
import { technicalDeadline } from '../../application/commands/technical-deadlines.ts'
import { ProjectionStoreError } from '../../projections/runtime/failures.ts'
import { DatabaseUnavailable, orUnavailable } from '../database/connection.ts'
import { STATEMENT_LIMIT_MS } from '../database/database.ts'

/** A statement that a caller waits for is given up like any request, also on the connections of background work. */
export const WAITED_FOR = {
  get query_timeout() {
    return technicalDeadline(STATEMENT_LIMIT_MS.request)
  },
}

/** Runs one statement. @throws ProjectionStoreError */
export async function run<R extends object>(
  pool: Pool,
  query: QueryConfig,
): Promise<{ rows: R[]; rowCount: number | null }> {
  try {
    return await pool.query<R>(query)
  } catch (error) {
    throw classified(error)
  }
}

/** What was to be written belongs to another owner by now. */
export function fenced(): ProjectionStoreError {
  return new ProjectionStoreError('fenced', 'another owner has taken over')
}

/** SQLSTATEs that pass by themselves although the server is there: rollback, locks, interventions, I/O. */
const TRANSIENT = /^(40|57|58|55P03|XX000)/
/** Classes that the values of a row are to blame for. */
const DATA = /^(22|23)/

interface DatabaseFault {
  readonly code?: string
  readonly routine?: string
  readonly table?: string
  readonly column?: string
  readonly constraint?: string
}

/**
 * Sorts an error of the driver. A server that is away passes by itself; it is the cause then, by which interfaces know
 * it. The server's own message is left out of data errors, because it quotes the value.
 */
export function classified(error: unknown): ProjectionStoreError {
  if (error instanceof ProjectionStoreError) return error
  const unavailable = orUnavailable('the read models', error)
  const isAway = unavailable instanceof DatabaseUnavailable
  const fault = isAway ? unavailable.cause : error
  const { code, routine, table, column, constraint } = (fault ?? {}) as DatabaseFault
  const sqlState = typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : null
  if (sqlState === null && !(error instanceof TypeError)) {
    return new ProjectionStoreError(
      'transient',
      `database unreachable (${code ?? 'connection lost'})`,
      unavailable,
    )
  }
  const where = [
    table && `table ${table}`,
    column && `column ${column}`,
    constraint && `constraint ${constraint}`,
    routine && `in ${routine}`,
  ].filter(Boolean)
  const message = `SQLSTATE ${sqlState ?? 'unknown'}${where.length > 0 ? ` (${where.join(', ')})` : ''}`
  if (isAway) return new ProjectionStoreError('transient', message, unavailable)
  if (sqlState && DATA.test(sqlState)) return new ProjectionStoreError('data', message)
  if (sqlState && TRANSIENT.test(sqlState)) return new ProjectionStoreError('transient', message, error)
  return new ProjectionStoreError('fatal', message, error)
}
