import { scaleTechnicalDeadlines } from '../../application/commands/technical-deadlines.ts'

/** On a busy machine nothing that is well is given up: of this process and of services that tests start. */
export const PATIENT = '20'

/** For files that have nothing to do with deadlines; every file begins with it. */
export function patientDeadlines(): void {
  use(PATIENT)
}

/** For files about what is silent or away: they wait for the product's own deadlines, in all that they start. */
export function deadlinesOfTheProduct(): void {
  use('1')
}

/** Runs what is refused after such a deadline, in a file that has nothing else to do with them. */
export async function withDeadlinesOfTheProduct<T>(work: () => Promise<T>): Promise<T> {
  deadlinesOfTheProduct()
  try {
    return await work()
  } finally {
    patientDeadlines()
  }
}

function use(scale: string): void {
  scaleTechnicalDeadlines(Number(scale))
  process.env.TECHNICAL_DEADLINE_SCALE = scale
}
