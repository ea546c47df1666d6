import { eventLog } from './0001-event-log.ts'
import { projections } from './0002-projections.ts'
import { work } from './0003-work.ts'
import { personalData } from './0004-personal-data.ts'
import { faults } from './0005-faults.ts'
import { logBinding } from './0006-log-binding.ts'
import { sessions } from './0007-sessions.ts'
import { knownServers } from './0008-known-servers.ts'
import { movedTo } from './0009-moved-to.ts'
import { append } from './0010-append.ts'
import { workSlots } from './0011-work-slots.ts'
import { parkedStreams } from './0012-parked-streams.ts'
import { webhookDeliveries } from './0013-webhook-deliveries.ts'
import { outbox } from './0014-outbox.ts'
import { bankArchive } from './0015-bank-archive.ts'
import { logMarks } from './0016-log-marks.ts'
import { awaySince } from './0017-away-since.ts'
import { aliveUntil } from './0018-alive-until.ts'
import { deliveryQueue } from './0019-delivery-queue.ts'
import { logTree } from './0020-log-tree.ts'
import { resentDeliveries } from './0021-resent-deliveries.ts'
import { consoleSessions } from './0022-console-sessions.ts'
import { traces } from './0023-traces.ts'
import { backups } from './0024-backups.ts'
import { throughput } from './0025-throughput.ts'
import { lookups } from './0026-lookups.ts'
import { deadLetteredAt } from './0027-dead-lettered-at.ts'
import type { SchemaMigration } from './schema-migration.ts'

/** Every migration by name, ascending. Entries are only ever added at the end; a released one never changes. */
export const migrations: Readonly<Record<string, SchemaMigration>> = {
  '0001-event-log': eventLog,
  '0002-projections': projections,
  '0003-work': work,
  '0004-personal-data': personalData,
  '0005-faults': faults,
  '0006-log-binding': logBinding,
  '0007-sessions': sessions,
  '0008-known-servers': knownServers,
  '0009-moved-to': movedTo,
  '0010-append': append,
  '0011-work-slots': workSlots,
  '0012-parked-streams': parkedStreams,
  '0013-webhook-deliveries': webhookDeliveries,
  '0014-outbox': outbox,
  '0015-bank-archive': bankArchive,
  '0016-log-marks': logMarks,
  '0017-away-since': awaySince,
  '0018-alive-until': aliveUntil,
  '0019-delivery-queue': deliveryQueue,
  '0020-log-tree': logTree,
  '0021-resent-deliveries': resentDeliveries,
  '0022-console-sessions': consoleSessions,
  '0023-traces': traces,
  '0024-backups': backups,
  '0025-throughput': throughput,
  '0026-lookups': lookups,
  '0027-dead-lettered-at': deadLetteredAt,
}
