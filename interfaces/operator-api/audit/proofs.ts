import { z } from 'zod'
import type { LogTree } from '../../../application/audit/log-tree.ts'
import type { ShownEvent } from '../../../application/audit/streams.ts'
import { optionalWholeNumberText } from '../../endpoints/fields.ts'
import { badRequest } from '../host/api.ts'

export const hashPath = z.array(z.string()).readonly().describe('Hashes in base64, from the bottom up')

/** A query parameter that asks for the proofs of the events that are answered. */
export const proving = {
  tree_size: optionalWholeNumberText({ min: 1 }).describe(
    'Each event comes with its inclusion proof in the tree of so many events, the size of a checkpoint',
  ),
}

/**
 * Events with their proofs, where these are asked for; null of an event behind the tree.
 * @param size of the tree.
 * @throws HttpError 400 where the log has fewer events; LogDiffers.
 */
export async function withProofs<Event extends ShownEvent>(
  logTree: LogTree,
  events: readonly Event[],
  size: number | undefined,
) {
  if (size === undefined) return events
  const proofs = await logTree.proofs(events, size)
  if (!proofs)
    throw badRequest('tree_size', 'tree_size must be the size of a checkpoint: the log has fewer events')
  return events.map((event, index) => ({ ...event, proof: proofs[index]! }))
}
