import type { InstallationName } from './installation.ts'

/** A file of tests, or some of its suites by their names, that takes long for what it adds to the others. */
interface LongSuites {
  /** Below `tests`, without `.test.ts`. */
  readonly file: string
  readonly suites?: RegExp
}

function endToEnd(...names: string[]): LongSuites[] {
  return names.map((name) => ({ file: `end-to-end/${name}` }))
}

/** Suites of what is the same wherever the log is and whoever carries notices: shapes, limits, refusals, keys. */
const OF_ANY_INSTALLATION = [
  ...endToEnd('core-authentication', 'core-rate-limits', 'large-calls', 'mcp-internal-error', 'mcp-protocol'),
  ...endToEnd('many-connections', 'mcp-rate-limit', 'one-caller-among-others', 'payments-and-portal'),
]

/**
 * What `npm test` leaves out, by name, and `npm run test:all` runs: outages and takeovers that others have in a shorter
 * form, and suites on a second and third installation whose subject does not depend on it.
 */
const LONG: Readonly<Record<InstallationName, readonly LongSuites[]>> = {
  embedded: [
    { file: 'contract/eventstoredb-cluster' },
    { file: 'contract/eventstoredb-outages', suites: /^the server is (stopped|frozen)$/ },
    { file: 'chaos/copy-events-kill' },
    { file: 'end-to-end/graceful-restart' },
    { file: 'end-to-end/many-connections' },
    { file: 'end-to-end/many-processes' },
    { file: 'end-to-end/moving-to-own-servers', suites: /^killed on the way$/ },
    { file: 'end-to-end/one-caller-among-others' },
    // leases stand in PostgreSQL on both engines; taking over on EventStoreDB is in roles-fencing
    { file: 'end-to-end/roles', suites: /^roles on EventStoreDB$/ },
    { file: 'end-to-end/rolling-upgrade' },
  ],
  // one process with the log in PostgreSQL is tried on the first one, NATS with several processes on the third
  'postgres-nats': [
    ...OF_ANY_INSTALLATION,
    ...endToEnd('core-employee-sync', 'core-inbound-webhook', 'core-retry-after-crash', 'given-postgres'),
    ...endToEnd('mcp-credentials', 'mcp-tools', 'operator-audit', 'operator-resources'),
    ...endToEnd('retry-after-lost-answer', 'secrecy'),
  ],
  'eventstoredb-nats': [
    ...OF_ANY_INSTALLATION,
    { file: 'end-to-end/given-postgres' },
    // what they are about stands in PostgreSQL and NATS
    { file: 'integration/nats-integration-events' },
    { file: 'integration/nats-wake-up' },
    { file: 'integration/process-manager-clock' },
    { file: 'integration/process-manager-runner' },
    { file: 'integration/projection-parking' },
    { file: 'integration/projection-rebuild' },
    { file: 'integration/projection-runner' },
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
