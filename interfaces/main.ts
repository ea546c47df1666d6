import { ConfigError, loadConfig } from '../infrastructure/config/config.ts'
import { DatabaseUnavailable } from '../infrastructure/database/database.ts'
import { EmbeddedPostgresError } from '../infrastructure/embedded-postgres/embedded-postgres.ts'
import { EventStoreUnavailable } from '../infrastructure/event-store/eventstoredb/errors.ts'
import { LogTooShort, OtherEventLog } from '../infrastructure/installation/log-pairing.ts'
import { NatsUnavailable } from '../infrastructure/messaging/nats/errors.ts'
import { createLogger } from '../infrastructure/telemetry/logger.ts'
import { CannotListen } from './service/hosts.ts'
import { type Service, startService } from './service/service.ts'

/** Failures of a start that are the installation's, not the program's: one line says what to do. */
const EXPECTED = [
  ...[ConfigError, DatabaseUnavailable, EmbeddedPostgresError, EventStoreUnavailable],
  ...[OtherEventLog, LogTooShort, NatsUnavailable, CannotListen],
]

/** How long a stop may take before the process ends all the same, in milliseconds. */
const STOP_LIMIT_MS = 30_000

async function main(): Promise<void> {
  const config = loadConfig(process.env)
  const logger = createLogger(config.logLevel)
  let service: Service | null = null
  let stopping = false

  const stop = async (signal: string, exitCode: number): Promise<void> => {
    if (stopping) return
    stopping = true
    logger.info('stopping', { signal })
    const limit = setTimeout(() => process.exit(1), STOP_LIMIT_MS)
    await service?.stop()
    clearTimeout(limit)
    logger.info('stopped')
    process.exit(exitCode)
  }
  process.on('SIGTERM', () => void stop('SIGTERM', 0))
  process.on('SIGINT', () => void stop('SIGINT', 0))
  process.on('uncaughtException', (error) => {
    logger.error('unexpected failure', {}, error)
    void stop('uncaughtException', 1)
  })
  process.on('unhandledRejection', (error) => logger.error('unhandled rejection', {}, error))

  service = await startService(config, logger)
  if (stopping) {
    await service.stop()
    process.exit(0)
  }
  void service.failure.then((why) => {
    logger.error('service failed', { reason: why })
    void stop('failure', 1)
  })
}

main().catch((error: unknown) => {
  const expected = EXPECTED.some((kind) => error instanceof kind)
  const line = expected
    ? (error as Error).message
    : `compstream cannot start: ${String((error as Error).stack)}`
  process.stderr.write(`${line}\n`)
  process.exit(1)
})
