import { type Ask, sendLoad } from './load.ts'
import { KNOWN_FILES } from './peers/bare-express.ts'
import { employee, POPULATION, reportBody } from './reports.ts'
import {
  type BenchServer,
  type Participants,
  type ServiceAddresses,
  type StartedProcess,
  seedParticipants,
  startProcess,
} from './servers.ts'

/** A bare Express server on a database of its own on the same server. @param name what it is compared with. */
export async function startBareExpress(
  server: BenchServer,
  name: string,
): Promise<StartedProcess<{ readonly bareExpress: string }>> {
  return startProcess(
    [process.argv[1]!, '--bare-express', await server.createDatabase(`bare_express_${name}`)],
    {},
    (line): line is { bareExpress: string } =>
      typeof line === 'object' && line !== null && 'bareExpress' in line,
  )
}

type Report = Extract<Ask, { kind: 'report' }>

/** What is asked of the service, or of bare Express in its place. */
export interface Asks {
  readonly status: Ask
  readonly toolCall: Ask
  /** Three employees, whom earlier reports were about, others each time. */
  readonly report: Report
  readonly keyedReport: Ask
  /** Three employees who were never reported before. */
  readonly newPeople: Ask
  /** A hundred known ones. */
  readonly largerReport: Report
}

/** Reports of whoever is known, so that each status read is of another of their files. */
const FILES = 200

/** Makes an employer with a policy, reports everybody once, and tells what to ask. @param people who are reported. */
export async function asksOf(addresses: ServiceAddresses, people = POPULATION): Promise<Asks> {
  const who = await seedParticipants(addresses)
  const { core, mcp } = addresses
  const reports = reportsTo(`${core}/api/v1/payroll/reports`, who.clientHeaders, who, people)
  await reportEverybody(reports.largerReport, people)
  const fileIds = await fileIdsOf(reports.report)
  return {
    ...reports,
    status: {
      kind: 'get',
      urls: fileIds.map((id) => `${core}/api/v1/files/status/${id}`),
      headers: who.clientHeaders,
    },
    toolCall: { kind: 'post', url: `${mcp}/mcp`, headers: who.agentHeaders, body: toolCall(who) },
  }
}

/** The same to bare Express: reads and inserts of its own, and the bodies that ours gets. */
export function bareAsks(url: string, people = POPULATION): Asks {
  const who = { fein: '12-3456789', policyNumber: 'WC-2026-000001', employerId: 'e', policyId: 'p' }
  return {
    ...reportsTo(`${url}/insert`, {}, who, people),
    status: { kind: 'get', urls: KNOWN_FILES.slice(0, FILES).map((id) => `${url}/read/${id}`), headers: {} },
    toolCall: { kind: 'post', url: `${url}/answer`, headers: {}, body: toolCall(who) },
  }
}

function reportsTo(
  url: string,
  headers: Readonly<Record<string, string>>,
  { fein, policyNumber }: Pick<Participants, 'fein' | 'policyNumber'>,
  people: number,
): Pick<Asks, 'report' | 'keyedReport' | 'newPeople' | 'largerReport'> {
  const report: Report = {
    kind: 'report',
    url,
    headers,
    people,
    who: { fein, policyNumber },
    employees: 3,
    keyed: false,
  }
  return {
    report,
    keyedReport: { ...report, keyed: true },
    newPeople: { ...report, people: 'new' },
    largerReport: { ...report, employees: 100 },
  }
}

async function reportEverybody(largerReport: Report, people: number): Promise<void> {
  const requests = Math.ceil(people / 100)
  await sendLoad({ asks: [largerReport], connections: 4, warmUp: 0, length: { requests } })
}

async function fileIdsOf(report: Report): Promise<string[]> {
  const { url, headers, who, employees } = report
  const ids: string[] = []
  for (let n = 0; n < FILES; n += 1) {
    const people = Array.from({ length: employees }, (_, k) => employee(n * employees + k, 0))
    const answer = await fetch(url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: reportBody(who, people),
    })
    ids.push(((await answer.json()) as { file_id: string }).file_id)
  }
  return ids
}

function toolCall({ employerId, policyId }: Pick<Participants, 'employerId' | 'policyId'>): string {
  const rows = [0, 1, 2].map((n) => {
    const { first_name, last_name, class_code, state, gross_wages } = employee(n, 0)
    return {
      employee_first_name: first_name,
      employee_last_name: last_name,
      class_code,
      state,
      gross_wages,
    }
  })
  return JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: {
      name: 'validate_payroll_submission',
      arguments: { employer_id: employerId, policy_id: policyId, rows },
    },
  })
}
