import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Load, sendLoad } from '../load.ts'
import { KNOWN_FILE } from '../peers/bare-express.ts'
import { perSecond, type Row } from '../report.ts'
import { type BenchServer, seedParticipants, startProcess, startService } from '../servers.ts'
import { inTurns, median } from '../statistics.ts'

const ROUNDS = 3
const CONNECTIONS = 32
const SECONDS = 5

/** Requests to the running service against a bare Express server on the same database server. */
export async function measureRequests(server: BenchServer): Promise<Row[]> {
  const dataDir = await mkdtemp(join(tmpdir(), 'compstream-bench-data-'))
  const service = await startService({
    DATA_DIR: dataDir,
    DATABASE_URL: await server.createDatabase('requests'),
    LOG_LEVEL: 'info',
  })
  const bare = await startProcess(
    [process.argv[1]!, '--bare-express', await server.createDatabase('bare_express')],
    {},
    (line): line is { bareExpress: string } =>
      typeof line === 'object' && line !== null && 'bareExpress' in line,
  )
  try {
    const { core, mcp } = service.ready
    const { bareExpress } = bare.ready
    const who = await seedParticipants(service.ready)
    const employees = Array.from({ length: 3 }, (_, n) => ({
      employee_id: `E${n}`,
      first_name: 'Rosa',
      last_name: 'Okafor',
      class_code: '5403',
      state: 'CA',
      gross_wages: 1893.38,
    }))
    const report = JSON.stringify({
      employer_fein: who.fein,
      policy_number: who.policyNumber,
      pay_period: { start_date: '2026-08-01', end_date: '2026-08-15' },
      employees,
    })
    const submitted = await fetch(`${core}/api/v1/payroll/reports`, {
      method: 'POST',
      headers: { ...who.clientHeaders, 'content-type': 'application/json' },
      body: report,
    })
    const { file_id } = (await submitted.json()) as { file_id: string }
    const toolCall = (policyId: string) =>
      JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: {
          name: 'validate_payroll_submission',
          arguments: {
            employer_id: who.employerId,
            policy_id: policyId,
            rows: employees.map(({ first_name, last_name, class_code, state, gross_wages }) => ({
              employee_first_name: first_name,
              employee_last_name: last_name,
              class_code,
              state,
              gross_wages,
            })),
          },
        },
      })
    const post = { method: 'POST' } as const
    const get = { method: 'GET', headers: {} } as const
    return [
      await compare('file status read', 0.8, 'one indexed read', {
        ours: { ...get, url: `${core}/api/v1/files/status/${file_id}`, headers: who.clientHeaders },
        bare: { ...get, url: `${bareExpress}/read/${KNOWN_FILE}` },
      }),
      await compare('tool call: validate 3 rows', 0.5, 'one indexed read', {
        ours: { ...post, url: `${mcp}/mcp`, headers: who.agentHeaders, body: toolCall(who.policyId) },
        bare: { ...post, url: `${bareExpress}/read`, headers: {}, body: toolCall(KNOWN_FILE) },
      }),
      await compare('report of 3 employees', 0.5, 'one insert', {
        ours: { ...post, url: `${core}/api/v1/payroll/reports`, headers: who.clientHeaders, body: report },
        bare: { ...post, url: `${bareExpress}/insert`, headers: {}, body: report },
      }),
    ]
  } finally {
    await Promise.all([service.stop(), bare.stop()])
    await rm(dataDir, { recursive: true, force: true })
  }
}

type Request = Omit<Load, 'connections' | 'seconds'>

async function compare(
  work: string,
  target: number,
  bareWork: string,
  requests: { ours: Request; bare: Request },
): Promise<Row> {
  const p99: Record<'ours' | 'bare', number[]> = { ours: [], bare: [] }
  const load = (name: 'ours' | 'bare', seconds: number) =>
    sendLoad({ ...requests[name], connections: CONNECTIONS, seconds })
  for (const name of ['ours', 'bare'] as const) await load(name, 2)
  const contender = (name: 'ours' | 'bare') => async () => {
    const result = await load(name, SECONDS)
    p99[name].push(result.p99)
    return result.requestsPerSecond
  }
  const rates = await inTurns(ROUNDS, { ours: contender('ours'), bare: contender('bare') })
  const value = (name: 'ours' | 'bare') => `${perSecond(rates[name])}, p99 ${median(p99[name])} ms`
  return {
    work,
    ours: value('ours'),
    peer: { name: `bare Express, ${bareWork}`, value: value('bare') },
    target: { kind: 'at least', ratio: target, unit: 'percent' },
    ratio: rates.ours / rates.bare,
  }
}
