import { ProjectionStoreError } from './failures.ts'
import type { Projection } from './projection.ts'
import { type CatchUp, ProjectionRunner, type RunnerParts } from './projection-runner.ts'

/** Where a generation is caught up on: parts of its own. */
interface Workplace extends Pick<RunnerParts, 'log' | 'registry' | 'store'> {
  readonly projections: readonly Projection[]
}

/** The other side of {@link CatchUp}. */
export async function catchUp(
  { projections, ...parts }: Workplace,
  ...[arrears, progress, signal]: Parameters<CatchUp>
): Promise<void> {
  const { epoch, upTo } = arrears
  const projection = projections.find(({ name }) => name === arrears.projection)
  const record = (await parts.store.generations.all()).find(
    (one) => one.projection === arrears.projection && one.generation === arrears.generation,
  )
  if (!record) throw new ProjectionStoreError('fenced', 'the generation is gone')
  // the program was replaced on disk since its owner started
  if (record.version !== projection?.version) {
    throw new ProjectionStoreError(
      'fatal',
      `it needs version ${record.version} of the code: start the process anew`,
    )
  }
  const events = { ...progress, caughtUp: () => undefined, fenced: () => undefined }
  await new ProjectionRunner({ ...parts, projection, record, epoch, events }).runTo(upTo, signal)
}
