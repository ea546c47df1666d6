import { defineConfig } from 'vitest/config'

/** Limits for what hangs, not expectations: a busy machine may take many times as long as a quiet one. */
const shared = {
  pool: 'forks',
  testTimeout: 600_000,
  hookTimeout: 600_000,
  expect: { poll: { timeout: 240_000, interval: 20 } },
  // a worker loads a module once, not once for each file
  isolate: false,
} as const
const onServers = {
  ...shared,
  globalSetup: ['tests/support/global-setup.ts'],
  runner: 'tests/support/installation-runner.ts',
  setupFiles: ['tests/support/after-each-file.ts'],
}

// a file that is named on the command line runs whole
if (process.argv.some((one) => one.endsWith('.test.ts'))) process.env.TEST_LONG = '1'

/** What the run came to. */
const ACCOUNT = process.env.TEST_ACCOUNT ?? 'node_modules/.cache/test-results.json'

function endToEnd(name: string): string {
  return `tests/end-to-end/${name}.test.ts`
}
const END_TO_END = ['tests/end-to-end/**/*.test.ts']

/** End-to-end suites that start what they need themselves, whatever the installation. */
const OWN_INSTALLATION = [
  // the embedded server and its data directory
  ...['embedded-restart', 'demo', 'readme-tour'].map(endToEnd),
  // processes told apart by role, on each engine, with NATS and without
  ...['many-processes', 'roles', 'roles-fencing', 'rolling-upgrade'].map(endToEnd),
  // a proxy before PostgreSQL
  endToEnd('database-silent'),
  // a NATS server that comes and goes
  endToEnd('nats-away'),
  // both engines at once
  ...['moving-engines', 'moving-to-own-servers'].map(endToEnd),
  // starts that are refused
  endToEnd('eventstoredb-refused'),
  // processes that are restarted under load, and servers that are taken away
  ...['graceful-restart', 'nginx-restarts', 'engine-outages'].map(endToEnd),
  // containers
  endToEnd('image'),
]

/** Compare how long calls take with others of the same run: for which nothing else may want the machine. */
const ALONE = [endToEnd('one-caller-among-others')]

/** Have events refused or held back at the worst moment, which nothing but a trigger in PostgreSQL can. */
const ON_TRIGGERS = ['retry-after-lost-answer', 'payment-session-crash', 'ach-collections-crash'].map(
  endToEnd,
)

/** Integration suites of what stands in PostgreSQL whatever holds the log, or that start what they need themselves. */
const WITHOUT_LOG = [
  'backup-restore',
  'backup-restore-eventstoredb',
  'copy-events',
  'database',
  'database-deadlines',
  'embedded-postgres',
  'event-log-upgrade',
  'event-log-windows',
  'eventstoredb-backlog',
  'eventstoredb-outages',
  'eventstoredb-rights',
  'fail-fast-log',
  'faults',
  'moved-database',
  'personal-data',
  'projection-leases',
  'read-database',
  'skipped-suites',
  'vault',
  'webhook-sender',
].map((name) => `tests/integration/${name}.test.ts`)

/** One process on PostgreSQL with NATS: what it consists of is tried on the other two, so it runs with what takes long. */
const onPostgresAndNats = {
  test: {
    ...onServers,
    name: 'postgres-nats',
    env: { TEST_INSTALLATION: 'postgres-nats' },
    include: END_TO_END,
    exclude: [...OWN_INSTALLATION, ...ALONE],
  },
}

/** One after another, once all others have ended. */
const alone = ['embedded', 'postgres-nats', 'eventstoredb-nats'].map((installation) => ({
  test: {
    ...onServers,
    name: `${installation}-alone`,
    env: { TEST_INSTALLATION: installation },
    include: ALONE,
    maxWorkers: 1,
    sequence: { groupOrder: 1 },
  },
}))

/**
 * `unit` needs no server. `database` is everything else on the default installation; the others are the same suites on
 * the other installations (tests/support/installation.ts), as far as these make a difference to them.
 */
export default defineConfig({
  test: {
    // on two cores: suites of outages, leases and freezes mostly wait
    maxWorkers: 3,
    reporters: ['default', ['./tests/support/account-reporter.ts', { outputFile: ACCOUNT }]],
    // EventStoreDB's client leaves a promise of its own without a handler when no node of a cluster answers, and rejects
    // the call as well, which the tests do see; the service logs it (interfaces/main.ts)
    onUnhandledError: ({ message, stack }) =>
      !(message.startsWith('Failed to discover after') && stack?.includes('@eventstore/db-client')),
    projects: [
      {
        test: {
          ...shared,
          name: 'unit',
          include: ['tests/{unit,properties}/**/*.test.ts'],
        },
      },
      {
        test: {
          ...onServers,
          name: 'database',
          include: ['tests/**/*.test.ts'],
          exclude: ['tests/{unit,properties}/**', ...ALONE],
        },
      },
      ...(process.env.TEST_LONG ? [onPostgresAndNats, ...alone] : []),
      {
        test: {
          ...onServers,
          name: 'eventstoredb-nats',
          env: { TEST_INSTALLATION: 'eventstoredb-nats' },
          include: [
            ...[...END_TO_END, 'tests/integration/**/*.test.ts'],
            ...['concurrency', 'instalments-kill'].map((name) => `tests/chaos/${name}.test.ts`),
          ],
          exclude: [...OWN_INSTALLATION, ...ALONE, ...ON_TRIGGERS, ...WITHOUT_LOG],
        },
      },
    ],
  },
})
