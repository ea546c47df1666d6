import type { Application } from '../commands/application.ts'
import { ReadModelsLate } from '../ports/read-models.ts'

/**
 * What a query finds. It may have been stored a moment ago, by another process as well: that there is nothing counts
 * only once the projection is at the head of the log.
 * @throws ReadModelsLate when the projection does not get there in time.
 */
export async function findCurrent<Found>(
  app: Pick<Application, 'readModels' | 'log'>,
  projection: string,
  find: () => Promise<Found | null>,
): Promise<Found | null> {
  const found = await find()
  if (found !== null) return found
  const isCurrent = await app.readModels.reached([projection], await app.log.head())
  const late = await find()
  if (late === null && !isCurrent) throw new ReadModelsLate()
  return late
}

/** Waits until all that is stored by now can be looked for. @throws ReadModelsLate */
export async function untilCurrent(
  { readModels, log }: Pick<Application, 'readModels' | 'log'>,
  ...projections: readonly string[]
): Promise<void> {
  if (!(await readModels.reached(projections, await log.head()))) throw new ReadModelsLate()
}
