import { z } from 'zod'
import { CosignatureRefused, readNote, type Witnessed } from '../../../application/audit/checkpoint-note.ts'
import type { LogTree } from '../../../application/audit/log-tree.ts'
import { mapInTimeSlices } from '../../../application/commands/time-slices.ts'
import type { StoredCheckpoint } from '../../../application/ports/log-tree-store.ts'
import { limitText, optionalWholeNumberText, text } from '../../endpoints/fields.ts'
import { badRequest, endpoint, notFound, record } from '../host/api.ts'
import { AUDITING } from '../host/roles.ts'
import { shownTime } from '../host/values.ts'
import { hashPath } from './proofs.ts'

const MOST = 1_000

const NO_CHECKPOINT = 'There is no checkpoint of that size'

/** Cosignatures as they are answered. */
export const cosignatures = z
  .array(
    z
      .object({
        witness: z.string().describe('Name of its key'),
        key_id: z.string().describe('Hex, as its verifier key has it: keys of one name differ in this'),
        signed_at: shownTime().describe("By the witness's clock"),
        size: z.int().describe('Events of the log that the checkpoint covers'),
      })
      .meta({ id: 'Cosignature' }),
  )
  .readonly()

const Checkpoint = z
  .object({
    size: z.int().describe('Events of the log that it covers'),
    root_hash: z.string().describe('Root of the Merkle tree over them, base64'),
    made_at: shownTime(),
    key: z.string().describe('Verifier key of who signed it, in the form of C2SP `signed-note`'),
    note: z.string().describe('The signed note, in the form of C2SP `tlog-checkpoint`'),
    witnesses: cosignatures.describe('Those in `AUDIT_WITNESS_KEYS` that signed it as well'),
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
    from: z
      .string()
      .nullable()
      .describe('The earlier signed note; null: the service keeps none of that size'),
    to: z.string().describe('The later signed note'),
    key,
  })
  .meta({ id: 'ConsistencyProof' })

function shown(logTree: LogTree, { size, note, key, madeAt }: StoredCheckpoint): z.input<typeof Checkpoint> {
  return {
    size,
    root_hash: readNote(note)!.root.toString('base64'),
    made_at: new Date(madeAt).toISOString(),
    key,
    note,
    witnesses: logTree.cosignaturesOn(note).map((one): Witnessed => ({ ...one, size })),
  }
}

export const logTreeEndpoints = [
  endpoint({
    operation: 'listCheckpoints',
    route: 'GET /audit/checkpoints',
    summary: 'List signed checkpoints of the log, newest first',
    description:
      'Of the last seven days all are kept, before that the last of each day, and the last of it that a witness signed.',
    query: z.object({ limit: limitText({ missing: 20, most: MOST }) }),
    answers: { 200: z.array(Checkpoint).readonly() },
    columns: 'size made_at root_hash',
    async handle({ host, query }) {
      const { logTree } = host.services
      return mapInTimeSlices(await logTree.checkpoints(query.limit), (one) => shown(logTree, one))
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
      const { logTree } = host.services
      // the log of a service that runs has its first event
      return shown(logTree, (await logTree.checkpoint(signal))!)
    },
  }),
  endpoint({
    operation: 'cosignCheckpoint',
    route: 'POST /audit/checkpoints/{size}/cosignatures',
    roles: AUDITING,
    summary: 'Attach the cosignature of a witness to a checkpoint',
    description:
      'A witness signs that it saw the checkpoint, and none that contradicts it (C2SP `tlog-cosignature`). Of one that signed it before, the later cosignature stays; lines of other keys are ignored.',
    params: z.object({
      size: z
        .string()
        .regex(/^[1-9]\d{0,14}$/, NO_CHECKPOINT)
        .describe('Size of the checkpoint'),
    }),
    body: z.object({
      cosignature: text(100_000).describe(
        'What the witness answered: `— <name> <base64>`, one or more lines',
      ),
    }),
    answers: { 200: Checkpoint },
    errors: {
      400: 'The cosignature is of no witness in `AUDIT_WITNESS_KEYS`, not of this checkpoint, or of no time until now',
      404: NO_CHECKPOINT,
    },
    refuses: { 400: ['unknown_witness', 'wrong_cosignature'] },
    command: { name: 'audit cosign', operands: ['cosignature'] },
    async handle({ host, params, body }) {
      const { logTree } = host.services
      try {
        const checkpoint = await logTree.cosign(Number(params.size), body.cosignature)
        if (!checkpoint) throw notFound(NO_CHECKPOINT)
        return shown(logTree, checkpoint)
      } catch (error) {
        if (!(error instanceof CosignatureRefused)) throw error
        const { reason, message } = error
        throw badRequest(
          'cosignature',
          `cosignature ${message}`,
          reason === 'unreadable' ? 'field_invalid' : reason,
        )
      }
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
    query: z.object({
      tree_size: optionalWholeNumberText({ min: 1 }).describe(
        'Size of the checkpoint that it leads to, such as one that a witness signed; left out: a new one',
      ),
    }),
    answers: { 200: Inclusion },
    errors: {
      404: 'The log has no such event, or no checkpoint of that size that covers it',
      409: 'The log no longer begins with what the checkpoint covers, or no known key signed that',
    },
    command: { name: 'audit prove' },
    async handle(call) {
      const { tree_size } = call.query
      const proof = await call.host.services.logTree.prove(call.params.event_id, tree_size ?? null)
      if (!proof) {
        throw notFound(
          tree_size === undefined
            ? 'The log has no such event'
            : 'The log has no such event, or no checkpoint of that size that covers it',
        )
      }
      // the leaf has the bytes as stored, unmasked
      await record(call, 'prove', proof.event_id)
      return proof
    },
  }),
  endpoint({
    operation: 'proveConsistency',
    route: 'GET /audit/consistency',
    summary: 'Prove that the log of so many events is the beginning of that of a checkpoint',
    query: z.object({
      from: optionalWholeNumberText({ min: 1 }).describe(
        'Events, such as a witness saw last; left out: those of the oldest checkpoint',
      ),
      to: optionalWholeNumberText({ min: 1 }).describe('Size of the checkpoint; left out: the newest'),
    }),
    answers: { 200: Consistency },
    errors: {
      404: 'There is no checkpoint of the size `to`, or it covers fewer events than `from`',
      409: 'The log no longer begins with what one of the checkpoints covers, or no known key signed that',
    },
    async handle({ host, query: { from, to } }) {
      const proof = await host.services.logTree.proveConsistency(from ?? null, to ?? null)
      if (!proof) throw notFound('There is no checkpoint of that size that covers as many events')
      return proof
    },
  }),
]
