import { type Rejection, reject } from '../../domain/kernel/rejection.ts'
import type { KindOfWork, WorkStore } from '../followers/work-store.ts'

export interface UnknownWorkParts {
  readonly work: Pick<WorkStore, 'unknownKinds' | 'discard'>
  /** Kinds of work that this release does. */
  readonly kinds: readonly KindOfWork[]
}

/**
 * Work of kinds that this release does not have: another release stored it. Nobody here claims it or waits for it; a
 * release that has the kind does it.
 */
export function unknownWork({ work, kinds }: UnknownWorkParts): ReturnType<WorkStore['unknownKinds']> {
  return work.unknownKinds(kinds)
}

/**
 * Removes work of a kind that this release does not have, all of it or one piece; a dry run only counts.
 * @returns how much of it there is; a rejection when this release has the kind.
 */
export async function discardWork(
  { work, kinds }: UnknownWorkParts,
  request: Parameters<WorkStore['discard']>[0],
): Promise<number | Rejection> {
  if (!kinds.some((known) => isSame(known, request))) return work.discard(request)
  const why = `Work of ${request.processManager}/${request.kind} is done by this release; only that of kinds which it does not have can be discarded`
  return reject('conflict', 'kind_of_work_known', why)
}

function isSame(one: KindOfWork, other: KindOfWork): boolean {
  return one.processManager === other.processManager && one.kind === other.kind
}
