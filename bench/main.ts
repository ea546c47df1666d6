import { parseArgs } from 'node:util'
import { type Load, runLoad } from './load.ts'
import { measureAppending } from './measurements/appending.ts'
import { measureCatchingUp } from './measurements/catching-up.ts'
import { measureEventStoreDB } from './measurements/eventstoredb.ts'
import { measureLoading } from './measurements/loading.ts'
import { measurePayrollReport } from './measurements/payroll-report.ts'
import { measureRequests } from './measurements/requests.ts'
import { measureSplitReport } from './measurements/split-report.ts'
import { measureStarting } from './measurements/starting.ts'
import { measureWakingUp } from './measurements/waking-up.ts'
import { measureWorkerProcesses } from './measurements/worker-processes.ts'
import { serveBareExpress } from './peers/bare-express.ts'
import { asJson, asMarkdown, asTable, describeMachine, machineLine, type Row } from './report.ts'
import { type BenchServer, startBenchServer, stopEverything } from './servers.ts'

/**
 * npm run bench [-- [--json | --markdown] [name ...]]
 *
 * Measures the service against peers that do the same work on the same database server in the same run, in turns.
 * Names pick measurements. Exits with 1 when a measurement fails, not when a target is missed.
 */
const MEASUREMENTS: Readonly<Record<string, (server: BenchServer) => Promise<Row[]>>> = {
  appending: measureAppending,
  'catching-up': measureCatchingUp,
  eventstoredb: measureEventStoreDB,
  loading: measureLoading,
  'payroll-report': measurePayrollReport,
  requests: measureRequests,
  'split-report': measureSplitReport,
  starting: measureStarting,
  'waking-up': measureWakingUp,
  'worker-processes': measureWorkerProcesses,
}

async function bench(names: readonly string[], format: 'table' | 'json' | 'markdown'): Promise<void> {
  const chosen = Object.entries(MEASUREMENTS).filter(
    ([name]) => names.length === 0 || names.some((part) => name.includes(part)),
  )
  if (chosen.length === 0) {
    throw new Error(`Nothing is called ${names.join(' ')}; there are ${Object.keys(MEASUREMENTS).join(', ')}`)
  }
  const server = await startBenchServer()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void stopEverything().finally(() => process.exit(130)))
  }
  try {
    const machine = await describeMachine(server)
    const rows: Row[] = []
    for (const [name, measure] of chosen) {
      const started = performance.now()
      process.stderr.write(`${name} …`)
      rows.push(...(await measure(server)))
      process.stderr.write(` ${Math.round((performance.now() - started) / 1000)} s\n`)
    }
    const shown = {
      table: asTable,
      markdown: asMarkdown,
      json: (all: readonly Row[]) => asJson(machine, all),
    }
    if (format !== 'json') process.stdout.write(`${machineLine(machine)}\n\n`)
    process.stdout.write(`${shown[format](rows)}\n`)
  } finally {
    await server.stop()
  }
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: 'boolean', default: false },
    markdown: { type: 'boolean', default: false },
    // what the bench starts itself as, in processes of their own
    'send-load': { type: 'string' },
    'bare-express': { type: 'string' },
  },
})
if (values['send-load'] !== undefined) await runLoad(JSON.parse(values['send-load']) as Load)
else if (values['bare-express'] !== undefined) await serveBareExpress(values['bare-express'])
else await bench(positionals, values.json ? 'json' : values.markdown ? 'markdown' : 'table')
