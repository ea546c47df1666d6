// Gives a user of EventStoreDB what the service needs, and takes everything else from everybody but administrators:
// that user reads all streams and appends to them; nobody else reads events, and only administrators delete streams.
//
//   node deploy/eventstoredb-rights.mjs 'esdb://admin:password@es-1.internal:2113?tlsCAFile=/etc/compstream/ca.pem' compstream
import { EventStoreDBClient, jsonEvent } from '@eventstore/db-client'

const [url, user] = process.argv.slice(2)
if (!url || !user) {
  process.stderr.write('usage: eventstoredb-rights.mjs <address with an administrator> <user>\n')
  process.exit(1)
}
const admins = '$admins'
const both = [admins, user]
const client = EventStoreDBClient.connectionString(url)
await client.setStreamMetadata('$all', { acl: { readRoles: both } })
await client.appendToStream(
  '$settings',
  jsonEvent({
    type: 'update-default-acl',
    data: {
      $userStreamAcl: { $r: both, $w: both, $d: admins, $mr: both, $mw: admins },
      $systemStreamAcl: { $r: admins, $w: admins, $d: admins, $mr: admins, $mw: admins },
    },
  }),
)
await client.dispose()
process.stdout.write(`${user} may read and append\n`)
