import type { InstallationName } from './installation.ts'

/** A file of tests, or the parts of it with a suite or a test of a name. */
interface Part {
  /** Below `tests`, without `.test.ts`. */
  readonly file: string
  readonly names?: RegExp
}

function filesOf(tier: string, ...names: string[]): Part[] {
  return names.map((name) => ({ file: `${tier}/${name}` }))
}

/** What `npm test` leaves out on the first installation: outages and takeovers that others have in a shorter form. */
const LONG: readonly Part[] = [
  { file: 'contract/eventstoredb-cluster' },
  // a consumer that is slow, or stands still, has shorter tests beside it
  { file: 'contract/eventstoredb-event-log', names: /^that the server drops because it is too slow/ },
  { file: 'contract/eventstoredb-outages', names: /^the server is (stopped|frozen)$/ },
  { file: 'chaos/copy-events-kill' },
  // pipeline-kill and webhook-kill kill under load, contract suites take servers away, end-to-end/roles takes over
  { file: 'chaos/many-processes' },
  // chaos/many-processes kills again and again, under load
  { file: 'chaos/pipeline-kill', names: /^again and again$/ },
  // chaos/webhook-kill has the deliveries; end-to-end/payment-links-live repeats what a provider was asked and did not answer
  { file: 'chaos/payments-kill' },
  // chaos/pipeline-kill has the same retries
  { file: 'end-to-end/core-retry-after-crash' },
  // `npm run bench` mints and kills as well; chaos/pipeline-kill has the same work, chaos/webhook-kill its timers
  { file: 'chaos/instalments-kill' },
  // integration/nacha-files dies at every step
  { file: 'chaos/nacha-kill' },
  // end-to-end tests of debits, their gates and files have each step of it
  { file: 'chaos/three-months' },
  // integration/legacy-duplicates stores lines that another attempt has stored
  { file: 'chaos/legacy-import-kill' },
  // integration/copy-events and backup-restore have the same on one server
  { file: 'integration/backup-restore-eventstoredb' },
  // contract/eventstoredb-outages has it for each call
  { file: 'integration/eventstoredb-outages' },
  { file: 'contract/eventstoredb-unindexed' },
  // end-to-end/payments-intake-crash kills between the steps of a request in the same way
  { file: 'end-to-end/financing-crash' },
  // unit and end-to-end tests of collections have the same steps without kills
  { file: 'end-to-end/ach-collections-crash' },
  { file: 'end-to-end/processor-switch' },
  // of several moments or modes, two
  {
    file: 'chaos/pipeline-kill',
    names: /^(right after it was accepted|with all processes of its database)$/,
  },
  // end-to-end/payments-intake-crash dies between the steps of a request in the same way
  { file: 'end-to-end/payment-session-crash' },
  // integration/copy-events keeps every byte, pairing and log-pairing refuse what does not belong together
  { file: 'integration/backup-restore' },
  // contract/eventstoredb-security refuses the same addresses
  { file: 'end-to-end/eventstoredb-refused' },
  {
    file: 'end-to-end/retry-after-lost-answer',
    names: /^an upload that was given up (meanwhile|is stored as another file although)/,
  },
  { file: 'end-to-end/roles-fencing', names: /^does not (store the work|end work)/ },
  // of the test run itself, and of a script
  { file: 'integration/skipped-suites' },
  { file: 'end-to-end/demo', names: /^says what is wrong/ },
  // the same verbs as those that answer JSON, printed
  { file: 'end-to-end/cli', names: /^prints tables for people$/ },
  // another time limit than those that the others there wait for
  { file: 'end-to-end/database-silent', names: /^an overview of projections/ },
  // contract/eventstoredb-outages has it for each call
  { file: 'end-to-end/engine-outages', names: /EventStoreDB is away/ },
  // end-to-end/payer-page-browser looks at the same pieces in every view
  { file: 'end-to-end/financing-page-browser' },
  { file: 'end-to-end/graceful-restart' },
  { file: 'end-to-end/many-connections' },
  { file: 'end-to-end/many-processes' },
  // integration/moved-database and copy-events move every which way
  { file: 'end-to-end/moving-engines', names: /^(an installation moves|who began)/ },
  // integration/moved-database and copy-events move what it moves, pairing refuses what does not belong together
  { file: 'end-to-end/moving-to-own-servers' },
  { file: 'end-to-end/nginx-restarts' },
  // leases stand in PostgreSQL on both engines; chaos/many-processes takes over on EventStoreDB
  { file: 'end-to-end/roles', names: /^roles on EventStoreDB$/ },
  { file: 'end-to-end/roles-fencing', names: / on EventStoreDB$/ },
  // of an upgrade, once; integration/payment-link-work has a processor that is away
  {
    file: 'end-to-end/payment-alerts',
    names: /^(that was cancelled before an upgrade|once the processor is back)/,
  },
  // each colour in two views: two of them lie on each side of what can be read
  {
    file: 'end-to-end/payer-page-browser',
    names: /(desktop|dark-phone|zoomed|#ffffff|#000000|#777777|#eef1f6|#ff0000)$/,
  },
  { file: 'end-to-end/rolling-upgrade' },
  // integration/process-manager-slots has ten silent receivers
  { file: 'integration/webhook-receivers' },
]

/**
 * What `npm test` runs on the other installations: suites whose subject is what these have of their own. All others mean
 * the same on each installation, and run on the first one.
 */
const RUN: Readonly<Record<Exclude<InstallationName, 'embedded'>, readonly Part[]>> = {
  // vitest.config.ts has this project in long runs alone
  'postgres-nats': [],
  // what is decided by an append or read from the log, and the story of a payroll through three processes
  'eventstoredb-nats': [
    {
      file: 'end-to-end/core-payroll-reports',
      names: /^(a report|more than 500 employees|an idempotency key|a pipeline that fails)$/,
    },
    ...filesOf('end-to-end', 'core-keyed-reports', 'foreign-events', 'operator-audit'),
    { file: 'end-to-end/virtual-clock', names: /^timers$/ },
    ...filesOf(
      'integration',
      'command-handling',
      'idempotent',
      'keyed-creations',
      'reservations',
      'upload-chunks',
    ),
    ...filesOf('integration', 'log-pairing', 'parking-follower', 'payroll-pipeline'),
    { file: 'integration/pairing', names: /at once$/ },
    // recipients go by positions of the log
    { file: 'integration/webhook-deliveries', names: /^who receives$/ },
    ...filesOf('chaos', 'concurrency'),
  ],
}

/** Whether everything is to run. */
const isEverythingRun = Boolean(process.env.TEST_LONG)

/** Whether a test is left out on an installation. @param names those of its suites, the outermost first, then its own. */
export function isLeftOut(installation: InstallationName, path: string, names: readonly string[]): boolean {
  if (isEverythingRun) return false
  const isListed = (parts: readonly Part[]) =>
    parts.some(
      ({ file, names: some }) =>
        path.endsWith(`tests/${file}.test.ts`) &&
        (some === undefined || names.some((name) => some.test(name))),
    )
  return installation === 'embedded' ? isListed(LONG) : !isListed(RUN[installation])
}
