import { z } from 'zod'
import { verifyLog, verifyStream } from '../../../application/audit/verification.ts'
import { optional, text } from '../../endpoints/fields.ts'
import { endpoint, notFound } from '../host/api.ts'
import { AUDITING } from '../host/roles.ts'
import { cosignatures } from './log-tree.ts'
import { streamName } from './streams.ts'

const AuditReport = z
  .object({
    verified: z.boolean(),
    events: z.int().describe('Events checked'),
    streams: z.int(),
    up_to: z.string().describe('Position of the last event checked'),
    last_hash: z.string().nullable().describe('Hash of that event'),
    head: z.string().describe('Position of the last event of the log when the check began'),
    checkpoints: z.int().describe('Signed checkpoints that it was held against'),
    witnesses: cosignatures.describe(
      'Of each witness in `AUDIT_WITNESS_KEYS` the last of these checkpoints that it signed',
    ),
    root_hash: z
      .string()
      .nullable()
      .describe('Root of the tree over the events, base64; null of a single stream'),
    first_problem: z
      .object({
        position: z.string(),
        stream: z.string().nullable().describe('Null: of the log as a whole'),
        revision: z.int().nullable(),
        event_id: z.string().nullable(),
        problem: z.enum([
          'no_hash',
          'hash_mismatch',
          'missing_events',
          'missing_positions',
          'missing_end',
          'unknown_signature',
          'replaced_events',
          'cut_stream',
          'changed_event',
          'inserted_event',
          'removed_event',
          'reordered_events',
          'differs_from_checkpoint',
          'damaged_tree',
        ]),
      })
      .nullable(),
  })
  .meta({ id: 'AuditReport' })

export const auditEndpoints = [
  endpoint({
    operation: 'verifyLog',
    route: 'POST /audit/verify',
    roles: AUDITING,
    summary: 'Check the log, or the hash chain of one stream',
    body: z.object({ stream: optional(text()) }),
    answers: { 200: AuditReport },
    errors: { 404: 'There is no such stream' },
    async handle({ host, body, signal }) {
      const { patientLog: log, logMemory: memory, logTree } = host.services
      if (body.stream === null) return verifyLog({ log, memory, tree: await logTree.check() }, signal)
      const report = await verifyStream({ log }, streamName(body.stream))
      if (!report) throw notFound('There is no such stream')
      return report
    },
  }),
]
