import type { InstallationName } from './installation.ts'

/** A file of tests, or some of its suites by their names, that takes long for what it adds to the others. */
interface LongSuites {
  /** Below `tests`, without `.test.ts`. */
  readonly file: string
  readonly suites?: RegExp
}

/**
 * What `npm test` leaves out, by name, and `npm run test:all` runs: outages and takeovers that others have in a shorter
 * form, and suites whose subject stands in PostgreSQL and NATS whatever holds the log.
 */
const LONG: Readonly<Record<InstallationName, readonly LongSuites[]>> = {
  embedded: [
    { file: 'contract/eventstoredb-cluster' },
    { file: 'contract/eventstoredb-outages', suites: /^the server is (stopped|frozen)$/ },
    { file: 'chaos/copy-events-kill' },
    { file: 'end-to-end/graceful-restart' },
    { file: 'end-to-end/many-processes' },
    { file: 'end-to-end/moving-to-own-servers', suites: /^killed on the way$/ },
    { file: 'end-to-end/one-caller-among-others' },
    { file: 'end-to-end/rolling-upgrade' },
  ],
  'postgres-nats': [{ file: 'end-to-end/one-caller-among-others' }],
  'eventstoredb-nats': [
    { file: 'end-to-end/given-postgres' },
    { file: 'end-to-end/one-caller-among-others' },
    { file: 'integration/nats-integration-events' },
    { file: 'integration/nats-wake-up' },
    { file: 'integration/process-manager-clock' },
    { file: 'integration/projection-parking' },
    { file: 'integration/projection-rebuild' },
  ],
}

/** Whether everything is to run. */
export const isEverythingRun = Boolean(process.env.TEST_LONG)

/** What of a file is left out: null nothing, else the names of its suites that are; undefined: all of it. */
export function leftOut(installation: InstallationName, path: string): RegExp | undefined | null {
  if (isEverythingRun) return null
  const long = LONG[installation].find(({ file }) => path.endsWith(`tests/${file}.test.ts`))
  return long ? long.suites : null
}
