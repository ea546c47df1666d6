import { z } from 'zod'
import { readNote } from '../../../application/audit/checkpoint-note.ts'
import type { StoredCheckpoint } from '../../../application/ports/log-tree-store.ts'
import { optionalWholeNumberText, wholeNumberText } from '../../endpoints/fields.ts'
import { endpoint, notFound, record } from '../host/api.ts'
import { AUDITING } from '../host/roles.ts'
import { shownTime } from '../host/values.ts'
import { hashPath } from './proofs.ts'

const MOST = 1_000

const Checkpoint = z
  .object({
    size: z.int().describe('Events of the log that it covers'),
    root_hash: z.string().describe('Root of the Merkle tree over them, base64'),
    made_at: shownTime(),
    key: z.string().describe('Verifier key of who signed it, in the form of C2SP `signed-note`'),
    note: z.string().describe('The signed note, in the form of C2SP `tlog-checkpoint`'),
  })
  .meta({ id: 'Checkpoint' })

const key = z.string().describe('Verifier key of who signed the checkpoint')

const Inclusion = z
  .object({
    kind: z.literal('inclusion'),
    event_id: z.string(),
    leaf: z.string().describe('The bytes of the event in the tree, base64; their hash is its leaf'),
    leaf_index: z.int().describe('Events before it'),
    path: hashPath,
    checkpoint: z.string().describe('The signed note that the path leads to'),
    key,
  })
  .meta({ id: 'InclusionProof' })

const Consistency = z
  .object({
    kind: z.literal('consistency'),
    path: hashPath,
    from: z.string().describe('The earlier signed note'),
    to: z.string().describe('The later signed note'),
    key,
  })
  .meta({ id: 'ConsistencyProof' })

function shown({ size, note, key, madeAt }: StoredCheckpoint): z.input<typeof Checkpoint> {
  return {
    size,
    root_hash: readNote(note)!.root.toString('base64'),
    made_at: new Date(madeAt).toISOString(),
    key,
    note,
  }
}

export const logTreeEndpoints = [
  endpoint({
    operation: 'listCheckpoints',
    route: 'GET /audit/checkpoints',
    summary: 'List signed checkpoints of the log, newest first',
    description: 'Of the last seven days all are kept, before that the last of each day.',
    query: z.object({
      limit: wholeNumberText({ min: 1, max: MOST, missing: 20 }).describe(`At most ${MOST}`),
    }),
    answers: { 200: z.array(Checkpoint).readonly() },
    command: {
      name: 'audit checkpoints',
      columns: { size: 'size', made: 'made_at', 'root hash': 'root_hash' },
    },
    async handle({ host, query }) {
      return (await host.services.logTree.checkpoints(query.limit)).map(shown)
    },
  }),
  endpoint({
    operation: 'makeCheckpoint',
    route: 'POST /audit/checkpoints',
    roles: AUDITING,
    summary: 'Sign how the log stands now',
    description: 'A log that has not gone on since the last checkpoint is answered with that one.',
    answers: { 201: Checkpoint },
    errors: {
      409: 'The log no longer begins with what the last checkpoint covers, or no known key signed that',
    },
    command: { name: 'audit checkpoint' },
    async handle({ host, signal }) {
      const checkpoint = await host.services.logTree.checkpoint(signal)
      // the log of a service that runs has its first event
      return shown(checkpoint!)
    },
  }),
  endpoint({
    roles: AUDITING,
    operation: 'proveEvent',
    route: 'GET /audit/proofs/{event_id}',
    summary: 'Prove that an event is in the log',
    description:
      'The proof leads to a checkpoint that covers it; `compstream audit check` checks it with nothing but the verifier key.',
    params: z.object({ event_id: z.uuid('The log has no such event').describe('Id of the event') }),
    answers: { 200: Inclusion },
    errors: {
      404: 'The log has no such event',
      409: 'The log no longer begins with what the last checkpoint covers, or no known key signed that',
    },
    command: { name: 'audit prove' },
    async handle(call) {
      const proof = await call.host.services.logTree.prove(call.params.event_id)
      if (!proof) throw notFound('The log has no such event')
      // the leaf has the bytes as stored, unmasked
      await record(call, 'prove', proof.event_id)
      return proof
    },
  }),
  endpoint({
    operation: 'proveConsistency',
    route: 'GET /audit/consistency',
    summary: 'Prove that the log of one checkpoint is the beginning of that of another',
    query: z.object({
      from: optionalWholeNumberText({ min: 1 }).describe(
        'Size of the earlier checkpoint; left out: the oldest',
      ),
      to: optionalWholeNumberText({ min: 1 }).describe('Size of the later checkpoint; left out: the newest'),
    }),
    answers: { 200: Consistency },
    errors: {
      404: 'There is no checkpoint of that size',
      409: 'The log no longer reaches as far as the later checkpoint',
    },
    command: { name: 'audit consistency' },
    async handle({ host, query: { from, to } }) {
      const proof = await host.services.logTree.proveConsistency(from ?? null, to ?? null)
      if (!proof) throw notFound('There are no checkpoints of these sizes, the one not larger than the other')
      return proof
    },
  }),
]
