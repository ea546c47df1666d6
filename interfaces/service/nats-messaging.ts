import type { Config } from '../../infrastructure/config/config.ts'
import type { Database } from '../../infrastructure/database/database.ts'
import { isKnownServer, rememberServers } from '../../infrastructure/installation/known-servers.ts'
import { Nats, natsAddresses } from '../../infrastructure/messaging/nats/connection.ts'
import { NatsUnavailable } from '../../infrastructure/messaging/nats/errors.ts'
import { JetStreamIntegrationEvents } from '../../infrastructure/messaging/nats/integration-events.ts'
import { NatsNotices } from '../../infrastructure/messaging/nats/notices.ts'
import { JetStreamWorkQueue } from '../../infrastructure/messaging/nats/work-queue.ts'
import type { Logger } from '../../infrastructure/telemetry/logger.ts'

type Wanted = Pick<Config, 'natsAccess' | 'natsReplicas'> & {
  /** Of one server or one cluster. */
  readonly natsUrls: readonly string[]
}

/**
 * Messaging over NATS.
 * @throws NatsUnavailable when it refuses, or does not answer and is not known.
 */
export async function openNatsMessaging(wanted: Wanted, pool: Database['pool'], logger: Logger) {
  const nats = await openNats(wanted, pool, logger)
  return {
    nats,
    notices: new NatsNotices(nats),
    queue: new JetStreamWorkQueue(nats, wanted.natsReplicas),
    integrationEvents: new JetStreamIntegrationEvents(nats, wanted.natsReplicas),
    close: () => nats.close(),
  }
}

/**
 * A server that this database has known is away for a while, and connected to later; one that nobody ever reached is a
 * wrong setting.
 */
async function openNats(
  { natsUrls: urls, natsAccess: access }: Wanted,
  pool: Database['pool'],
  logger: Logger,
): Promise<Nats> {
  const log = {
    info: (text: string) => logger.info('nats', { text }),
    warn: (text: string) => logger.warn('nats', { text }),
  }
  let nats: Nats
  try {
    nats = await Nats.open(urls, log, access)
  } catch (error) {
    const isAway = error instanceof NatsUnavailable && error.isAway
    if (isAway && (await isKnownServer(pool, natsAddresses(urls)))) return Nats.openLater(urls, log, access)
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
