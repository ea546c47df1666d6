import type { IntegrationEventChannel } from '../../application/ports/integration-events.ts'
import type { Notices } from '../../application/ports/notices.ts'
import type { WorkQueue } from '../../application/ports/work-queue.ts'
import type { Config } from '../../infrastructure/config/config.ts'
import type { Database } from '../../infrastructure/database/database.ts'
import { InProcessNotices } from '../../infrastructure/messaging/in-process/notices.ts'
import { InProcessWorkQueue } from '../../infrastructure/messaging/in-process/work-queue.ts'
import type { Logger } from '../../infrastructure/telemetry/logger.ts'

/** How processes hear of each other, and others of them. */
export interface Messaging {
  readonly notices: Notices
  readonly queue: WorkQueue
  /** Null where there is no NATS. */
  readonly integrationEvents: IntegrationEventChannel | null
  /** The connection to NATS; null where there is none. */
  readonly nats: { readonly connected: boolean } | null
  close(): Promise<void>
}

/**
 * Connects to NATS where it is configured; else a process hears of itself alone.
 * @throws NatsUnavailable when it refuses, or does not answer and is not known.
 */
export async function openMessaging(
  config: Pick<Config, 'natsUrls' | 'natsAccess' | 'natsReplicas'>,
  pool: Database['pool'],
  logger: Logger,
): Promise<Messaging> {
  const { natsUrls } = config
  if (natsUrls === null) {
    return {
      notices: new InProcessNotices(),
      queue: new InProcessWorkQueue(),
      integrationEvents: null,
      nats: null,
      close: async () => undefined,
    }
  }
  // its client is loaded where it is used
  const { openNatsMessaging } = await import('./nats-messaging.ts')
  return openNatsMessaging({ ...config, natsUrls }, pool, logger)
}
