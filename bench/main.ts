import { readFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { type Effort, effort } from './effort.ts'
import { runLoad } from './load.ts'
import { measureAppending } from './measurements/appending.ts'
import { measureCatchingUp } from './measurements/catching-up.ts'
import { measureDebitBatch } from './measurements/debit-batch.ts'
import { measureEventStoreDB } from './measurements/eventstoredb.ts'
import { measureInstallments } from './measurements/installments.ts'
import { measureLedger } from './measurements/ledger.ts'
import { measureLegacyImport } from './measurements/legacy-import.ts'
import { measureLoading } from './measurements/loading.ts'
import { measureManyConnections } from './measurements/many-connections.ts'
import { measureMixedLoad } from './measurements/mixed-load.ts'
import { measurePayerPage } from './measurements/payer-page.ts'
import { measurePaymentLinks } from './measurements/payment-links.ts'
import { measurePayrollCalendar } from './measurements/payroll-calendar.ts'
import { measurePayrollReport } from './measurements/payroll-report.ts'
import { measureRebuilding } from './measurements/rebuilding.ts'
import { measureRequests } from './measurements/requests.ts'
import { measureSearch } from './measurements/search.ts'
import { measureSplitReport } from './measurements/split-report.ts'
import { measureStarting } from './measurements/starting.ts'
import { measureTwoWriters } from './measurements/two-writers.ts'
import { measureVerifying } from './measurements/verifying.ts'
import { measureWakingUp } from './measurements/waking-up.ts'
import {
  measureHttp,
  measureHttps,
  measureLatency,
  measureSilent,
} from './measurements/webhook-deliveries.ts'
import { measureOutage, runOutage } from './measurements/webhook-outage.ts'
import { measureWorkerProcesses } from './measurements/worker-processes.ts'
import { calendarTables } from './payroll-calendar.ts'
import { serveBareExpress } from './peers/bare-express.ts'
import { serveReceivers } from './peers/webhook-receiver.ts'
import {
  asJson,
  asMarkdown,
  asTable,
  describeMachine,
  machineLine,
  pooled,
  type Results,
  type Row,
} from './report.ts'
import { type BenchServer, startBenchServer, stopEverything, withServiceOf } from './servers.ts'
import { runWriter } from './writers.ts'

/**
 * npm run bench [-- [--json | --markdown] [--runs n] [--quick] [--minutes n] [--seconds n] [--events n] [name ...]]
 * npm run bench -- --against DIR [name ...]
 * npm run bench -- --print [--markdown] results.json ...
 * npm run bench -- --calendar
 *
 * Measures the service against peers that do the same work on the same database server in the same run, in turns.
 * Names pick measurements. `--against` measures the service of another checkout, which is built, in turns with ours, where a
 * measurement starts one. `--print` measures nothing and puts together what `--json` printed in earlier runs; `--calendar` prints the tables of docs/operators/scaling.md.
 * Exits with 1 when a measurement fails, not when a target is missed.
 */
type Measure = (server: BenchServer, effort: Effort) => Promise<Row[]>
const MEASUREMENTS: Readonly<Record<string, Measure>> = {
  appending: measureAppending,
  'catching-up': measureCatchingUp,
  'debit-batch': measureDebitBatch,
  eventstoredb: measureEventStoreDB,
  installments: measureInstallments,
  ledger: measureLedger,
  'legacy-import': measureLegacyImport,
  loading: measureLoading,
  'many-connections': measureManyConnections,
  'mixed-load': measureMixedLoad,
  'payer-page': measurePayerPage,
  'payment-links': measurePaymentLinks,
  'payroll-calendar': measurePayrollCalendar,
  'payroll-report': measurePayrollReport,
  rebuilding: measureRebuilding,
  requests: measureRequests,
  search: measureSearch,
  'split-report': measureSplitReport,
  starting: measureStarting,
  'two-writers': measureTwoWriters,
  verifying: measureVerifying,
  'waking-up': measureWakingUp,
  'webhooks-http': measureHttp,
  'webhooks-latency': measureLatency,
  'webhooks-outage': measureOutage,
  'webhooks-silent': measureSilent,
  'webhooks-tls': measureHttps,
  'worker-processes': measureWorkerProcesses,
}

interface Options {
  readonly quick: boolean
  readonly minutes?: number
  readonly seconds?: number
  readonly events?: number
  readonly against?: string
}

/** Rounds of each build: fewer decide nothing. */
const ROUNDS_OF_EACH = 3

/** The rows of a measurement, and of the same work in turns with the service of another checkout. */
async function besideBuild(
  dir: string,
  measure: Measure,
  server: BenchServer,
  whole: Effort,
): Promise<Row[]> {
  const once: Effort = { ...whole, rounds: () => 1 }
  const there: Row[] = []
  const here: Row[] = []
  for (let n = 0; n < whole.rounds(ROUNDS_OF_EACH); n += 1) {
    const rows = await withServiceOf(dir, () => measure(server, once))
    // it starts no service: there is nothing to hold against each other
    if (rows === null) return measure(server, whole)
    there.push(...rows)
    here.push(...(await measure(server, once)))
  }
  const theirs = pooled(there)
  const ours = pooled(here)
  const between = ours
    .filter(({ work }, n) => ours.findIndex((one) => one.work === work) === n)
    .flatMap((row): Row[] => {
      const their = theirs.find(({ work }) => work === row.work)
      if (!their) return []
      return [{ ...row, peer: { name: `the build in ${dir}`, rounds: their.ours }, target: { kind: 'none' } }]
    })
  return [...between, ...ours]
}

async function bench(names: readonly string[], options: Options): Promise<Results> {
  const { against } = options
  const chosen = Object.entries(MEASUREMENTS).filter(
    ([name]) => names.length === 0 || names.some((part) => name.includes(part)),
  )
  if (chosen.length === 0) {
    throw new Error(`Nothing is called ${names.join(' ')}; there are ${Object.keys(MEASUREMENTS).join(', ')}`)
  }
  const server = await startBenchServer()
  try {
    const machines = [await describeMachine(server, options.quick)]
    const results: Row[] = []
    for (const [name, measure] of chosen) {
      const started = performance.now()
      process.stderr.write(`${name} …`)
      const whole = effort(options)
      results.push(
        ...(against === undefined
          ? await measure(server, whole)
          : await besideBuild(against, measure, server, whole)),
      )
      process.stderr.write(` ${Math.round((performance.now() - started) / 1000)} s\n`)
    }
    return { machines, results }
  } finally {
    await server.stop()
  }
}

function together(runs: readonly Results[]): Results {
  return {
    machines: runs.flatMap(({ machines }) => machines),
    results: pooled(runs.flatMap(({ results }) => results)),
  }
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: 'boolean', default: false },
    markdown: { type: 'boolean', default: false },
    runs: { type: 'string', default: '1' },
    quick: { type: 'boolean', default: false },
    minutes: { type: 'string' },
    seconds: { type: 'string' },
    events: { type: 'string' },
    against: { type: 'string' },
    print: { type: 'boolean', default: false },
    calendar: { type: 'boolean', default: false },
    // what the bench starts itself as, in processes of their own
    'send-load': { type: 'boolean', default: false },
    'bare-express': { type: 'string' },
    'write-log': { type: 'string' },
    'webhook-receivers': { type: 'boolean', default: false },
    'webhook-outage': { type: 'boolean', default: false },
  },
})

async function run(): Promise<void> {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void stopEverything().finally(() => process.exit(130)))
  }
  const runs: Results[] = []
  if (values.print) {
    for (const file of positionals) runs.push(JSON.parse(await readFile(file, 'utf8')) as Results)
  } else {
    const { minutes, seconds, events, against } = values
    const options: Options = {
      quick: values.quick,
      ...(against === undefined ? {} : { against }),
      ...(minutes === undefined ? {} : { minutes: Number(minutes) }),
      ...(seconds === undefined ? {} : { seconds: Number(seconds) }),
      ...(events === undefined ? {} : { events: Number(events) }),
    }
    for (let n = 0; n < Number(values.runs); n += 1) {
      runs.push(await bench(positionals, options))
    }
  }
  const all = together(runs)
  if (values.json) {
    process.stdout.write(`${asJson(all)}\n`)
    return
  }
  const table = values.markdown ? asMarkdown(all.results) : asTable(all.results)
  process.stdout.write(`${all.machines.map(machineLine).join('\n')}\n\n${table}\n`)
}

if (values['send-load']) await runLoad()
else if (values['bare-express'] !== undefined) await serveBareExpress(values['bare-express'])
else if (values.calendar) process.stdout.write(calendarTables())
else if (values['webhook-receivers']) await serveReceivers()
else if (values['webhook-outage']) await runOutage()
else if (values['write-log'] !== undefined) await runWriter(values['write-log'])
else await run()
