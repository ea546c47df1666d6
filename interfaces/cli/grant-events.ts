import { ConfigError } from '../../infrastructure/config-error.ts'
import { EventStoreUnavailable } from '../../infrastructure/event-store/eventstoredb/errors.ts'
import { giveRights } from '../../infrastructure/event-store/eventstoredb/rights.ts'
import { CliError, type CliIo, UsageError } from './io.ts'
import { placeOf } from './log-places.ts'

/**
 * Gives a user of EventStoreDB the rights of the service. The administrator's address comes from a variable or a
 * file: command lines show in the list of processes.
 * @throws CliError, UsageError; messages never quote the address.
 */
export async function grantEvents(
  user: string,
  env: CliIo['env'],
): Promise<{ readonly user: string; readonly rights: string }> {
  try {
    const place = placeOf('events grant', 'EVENTSTORE_ADMIN_URL', env)
    if (place.engine !== 'eventstoredb') {
      throw new UsageError('EVENTSTORE_ADMIN_URL takes an address that begins with esdb://.')
    }
    await giveRights(place.url, user)
  } catch (error) {
    if (error instanceof EventStoreUnavailable || error instanceof ConfigError) {
      throw new CliError(error.message)
    }
    throw error
  }
  return { user, rights: 'read, append' }
}
