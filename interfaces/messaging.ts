import type { Config } from '../infrastructure/config/config.ts'
import type { Database } from '../infrastructure/database/database.ts'
import { isKnownServer, rememberServers } from '../infrastructure/installation/known-servers.ts'
import { Nats, NatsUnavailable, natsAddresses } from '../infrastructure/messaging/nats/connection.ts'
import type { Logger } from '../infrastructure/telemetry/logger.ts'

/**
 * Connects to NATS where it is configured; null where it is not. A server that this database has known is away for a
 * while, and connected to later; one that nobody ever reached is a wrong setting.
 * @throws NatsUnavailable when it refuses, or does not answer and is not known.
 */
export async function openNats(
  config: Pick<Config, 'natsUrls'>,
  pool: Database['pool'],
  logger: Logger,
): Promise<Nats | null> {
  const { natsUrls: urls } = config
  if (urls === null) return null
  const log = {
    info: (text: string) => logger.info('nats', { text }),
    warn: (text: string) => logger.warn('nats', { text }),
  }
  let nats: Nats
  try {
    nats = await Nats.open(urls, log)
  } catch (error) {
    const isAway = error instanceof NatsUnavailable && error.isAway
    if (isAway && (await isKnownServer(pool, natsAddresses(urls)))) return Nats.openLater(urls, log)
    throw error
  }
  try {
    // that one of a list was reached says nothing about the others
    await rememberServers(pool, [nats.address])
    return nats
  } catch (error) {
    await nats.close()
    throw error
  }
}
