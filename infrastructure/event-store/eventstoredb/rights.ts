import { jsonEvent } from '@eventstore/db-client'
import { connect } from './client.ts'
import { oneLine } from './client-errors.ts'
import { EventStoreUnavailable } from './errors.ts'

const ADMINS = '$admins'

/**
 * Gives a user what the service needs, and takes everything else from everybody but administrators: that user reads
 * all streams and appends to them; nobody else reads events, and only administrators delete streams.
 * @param url with an administrator's name and password.
 * @throws EventStoreUnavailable in one line, without the address.
 */
export async function giveRights(url: string, user: string): Promise<void> {
  const { target, client } = connect(url)
  const both = [ADMINS, user]
  try {
    await client.setStreamMetadata('$all', { acl: { readRoles: both } })
    await client.appendToStream(
      '$settings',
      jsonEvent({
        type: 'update-default-acl',
        data: {
          $userStreamAcl: { $r: both, $w: both, $d: ADMINS, $mr: both, $mw: ADMINS },
          $systemStreamAcl: { $r: ADMINS, $w: ADMINS, $d: ADMINS, $mr: ADMINS, $mw: ADMINS },
        },
      }),
    )
  } catch (error) {
    throw new EventStoreUnavailable(target, oneLine(error))
  } finally {
    await client.dispose()
  }
}
