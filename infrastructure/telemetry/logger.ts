import { type DestinationStream, destination, pino, stdTimeFunctions } from 'pino'
import { traceIdOf, traceparent } from '../../application/ports/tracing.ts'
import type { LogLevel } from '../config/settings.ts'
import { mask, type SafeFields, safeError, safeFields } from './redaction.ts'

/**
 * The service's log: JSON lines of an event's word, safe fields, the trace under way and at most one error. There is no
 * way to log free text or objects, so that nothing secret or personal gets in by accident.
 */
export interface Logger {
  debug(event: string, fields?: SafeFields): void
  info(event: string, fields?: SafeFields): void
  warn(event: string, fields?: SafeFields, error?: unknown): void
  error(event: string, fields?: SafeFields, error?: unknown): void
}

const EVENT = /^[a-z][a-z0-9]*(?:[ ._-][a-z0-9]+){0,8}$/

/**
 * A logger of JSON lines.
 * @param stream where lines go, default standard output.
 */
export function createLogger(level: LogLevel, stream?: DestinationStream): Logger {
  const log = pino(
    {
      level,
      base: null,
      messageKey: 'event',
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    stream ?? standardOutput(),
  )
  const write =
    (level: 'debug' | 'info' | 'warn' | 'error') =>
    (event: string, fields: SafeFields = {}, error?: unknown): void => {
      if (!log.isLevelEnabled(level)) return
      const line = safeFields({ trace_id: traceIdOf(traceparent()), ...fields })
      log[level](
        error === undefined ? line : { ...line, error: safeError(error) },
        EVENT.test(event) ? event : mask(event),
      )
    }
  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
  }
}

function standardOutput(): DestinationStream {
  const stdout = destination({ fd: 1, sync: true })
  // the reader of the lines is gone: no reason to end the service
  stdout.on('error', () => undefined)
  return stdout
}
