import { setTimeout as delay } from 'node:timers/promises'
import { baseUrl, newIdempotencyKey, send } from './http-client.ts'
import { CliError, type CliIo, EXIT } from './io.ts'
import { DEFAULT_MCP } from './operator-client.ts'
import { amount, type Output, printable, rows } from './output.ts'
import { PartnerClient, type PartnerOptions } from './partner-client.ts'
import { describeColumns, type PayrollCsv, type PayrollRecord, readPayrollCsv } from './payroll-csv.ts'
import { Progress } from './progress.ts'
import { secretOf } from './secrets.ts'

export interface SubmitOptions extends PartnerOptions {
  readonly employerFein: string
  readonly policyNumber: string
  readonly periodStart?: string
  readonly periodEnd?: string
  readonly mcpUrl?: string
  readonly agentKey?: string
  readonly agentKeyFile?: string
  readonly idempotencyKey?: string
  /** Seconds to wait for the last phase. */
  readonly timeout: number
}

/** What the core API takes, in bytes. */
const MAX_BODY = 10 * 1024 * 1024
const FIRST_POLL_MS = 100
const LONGEST_POLL_MS = 2_000

/** A file's status as the core API tells it. */
interface FileStatus {
  readonly file_id: string
  readonly status: string
  readonly error?: string
  readonly employee_count?: number
  readonly phase_1?: Phase
  readonly phase_2?: Phase
  readonly phase_3?: Phase
}
type Phase = Readonly<Record<string, unknown>> & { readonly status?: string }

interface RedRow {
  readonly row_number: number
  readonly employee_name: string
  readonly reasons: readonly { field: string; message: string; suggestion: string }[]
}

/** Submits a CSV as a payroll report and waits until its premium is known. */
export async function submitPayrollFile(io: CliIo, file: string, options: SubmitOptions): Promise<Output> {
  const agentKey = secretOf(io, options, 'agentKey', 'COMPSTREAM_AGENT_KEY')
  const core = await PartnerClient.from(io, options, 'core', file !== '-')
  const progress = new Progress(io)
  try {
    const { columns, records } = await readPayrollCsv(file, io.stdin, (count) =>
      progress.show('reading', { done: count, note: 'rows' }),
    )
    const body = reportBody(records, options)
    if (Buffer.byteLength(body) > MAX_BODY) {
      throw new CliError(
        `${file} is larger than the 10 MiB that one report takes; split it into one file per report`,
      )
    }
    progress.show('sending', { done: 0, total: records.length })
    const report = await core.send('POST', '/payroll/reports', {
      text: body,
      headers: { 'Idempotency-Key': options.idempotencyKey ?? newIdempotencyKey() },
      // a large report is answered when it is stored
      timeoutMs: options.timeout * 1000,
    })
    const fileId = String(report.file_id ?? report.report_id)
    const stored = { file_id: fileId, status: String(report.status) }
    const followed = await untilComplete(core, stored, records.length, options.timeout * 1000, progress)
    progress.stop()
    const isSeen = agentKey !== null && followed.failure === undefined
    const details = isSeen ? await agentDetails(io, options, agentKey, fileId).catch(detailsFailed) : null
    return outcome(columns, report, followed, details)
  } finally {
    progress.stop()
  }
}

function reportBody(records: readonly PayrollRecord[], options: SubmitOptions): string {
  const { periodStart, periodEnd } = options
  return JSON.stringify({
    employer_fein: options.employerFein,
    policy_number: options.policyNumber,
    ...(periodStart === undefined && periodEnd === undefined
      ? {}
      : { pay_period: { start_date: periodStart, end_date: periodEnd } }),
    employees: records,
  })
}

/** How far a file has come, and why its end was not seen. */
interface Followed {
  readonly status: FileStatus
  readonly failure?: CliError
}

/** @param stored what is known of the file before it is asked about. */
async function untilComplete(
  core: PartnerClient,
  stored: FileStatus,
  total: number,
  timeoutMs: number,
  progress: Progress,
): Promise<Followed> {
  const { file_id: fileId } = stored
  const deadline = performance.now() + timeoutMs
  let status = stored
  const unfinished = (why: string) => ({
    status,
    failure: new CliError(why, { error: 'Unfinished', exitCode: EXIT.fileUnfinished }),
  })
  for (let pause = FIRST_POLL_MS; ; pause = Math.min(pause * 1.5, LONGEST_POLL_MS)) {
    const path = `/files/status/${encodeURIComponent(fileId)}`
    try {
      status = (await core.send('GET', path)) as unknown as FileStatus
    } catch (thrown) {
      if (!(thrown instanceof CliError)) throw thrown
      return unfinished(`File ${fileId} was stored; how far it is could not be read: ${thrown.text}`)
    }
    // phases 2 and 3 see the green rows only
    const red = numberOf(status.phase_1?.red_rows) ?? 0
    const [done, whole] = [processed(status), total + 2 * (total - red)]
    progress.show('processing', { done, total: whole, note: `${done}/${whole}` })
    if (isDone(status.phase_3?.status) || status.status === 'failed') return { status }
    if (performance.now() > deadline) {
      return unfinished(
        `File ${fileId} was stored and is still being processed after ${Math.round(timeoutMs / 1000)} s`,
      )
    }
    await delay(pause)
  }
}

/** Rows that the phases have been through, each phase counted. */
function processed(status: FileStatus): number {
  const count = (phase: Phase | undefined, ...names: string[]) =>
    names.reduce((sum, name) => sum + (typeof phase?.[name] === 'number' ? phase[name] : 0), 0)
  return (
    count(status.phase_1, 'green_rows', 'red_rows') +
    count(status.phase_2, 'processed_rows') +
    count(status.phase_3, 'processed_rows')
  )
}

/** What only the tool server tells: total wages, and why rows are red. */
interface AgentDetails {
  readonly wagesCents: number | null
  readonly redRows: readonly RedRow[]
  readonly hasMore: boolean
}

async function agentDetails(
  io: CliIo,
  options: SubmitOptions,
  agentKey: string,
  fileId: string,
): Promise<AgentDetails> {
  const url = `${baseUrl(options.mcpUrl ?? io.env.COMPSTREAM_MCP_URL ?? DEFAULT_MCP)}/mcp`
  const status = await callTool(url, agentKey, 'get_submission_status', fileId)
  const errors = await callTool(url, agentKey, 'get_validation_errors', fileId)
  const wages = (status.phase_2 as Phase | undefined)?.total_auditable_wages_cents
  return {
    wagesCents: typeof wages === 'number' ? wages : null,
    redRows: (errors.errors ?? []) as readonly RedRow[],
    hasMore: errors.has_more === true,
  }
}

/** What was stored is printed all the same. */
function detailsFailed(thrown: unknown): CliError {
  if (!(thrown instanceof Error)) throw thrown
  const why = `The report was stored; why rows are red could not be read: ${thrown.message}`
  return new CliError(why, { error: 'Details Failed', exitCode: EXIT.detailsFailed })
}

async function callTool(
  url: string,
  agentKey: string,
  name: string,
  fileId: string,
): Promise<Readonly<Record<string, unknown>>> {
  const { body } = await send({
    method: 'POST',
    url,
    headers: { Authorization: `Bearer ${agentKey}`, Accept: 'application/json, text/event-stream' },
    body: {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name, arguments: { file_id: fileId } },
    },
  })
  const answer = body as {
    readonly result?: { readonly content?: readonly { readonly text?: string }[] }
    readonly error?: { readonly message?: string }
  }
  const text = answer.result?.content?.[0]?.text
  if (text === undefined) {
    throw new CliError(`The tool server refused ${name}: ${answer.error?.message ?? 'no message'}`)
  }
  return JSON.parse(text) as Readonly<Record<string, unknown>>
}

function outcome(
  columns: PayrollCsv['columns'],
  report: Readonly<Record<string, unknown>>,
  { status, failure }: Followed,
  found: AgentDetails | CliError | null,
): Output {
  const details = found instanceof CliError ? null : found
  const wagesCents = details?.wagesCents ?? numberOf(status.phase_2?.total_auditable_wages_cents)
  const json = {
    columns,
    file_id: status.file_id,
    status: status.status,
    ...(status.error === undefined ? {} : { error: status.error }),
    file_name: report.file_name,
    environment: report.environment,
    employer: report.employer,
    policy: report.policy,
    employee_count: report.employee_count,
    phase_1: status.phase_1 ?? null,
    phase_2: status.phase_2 ?? null,
    phase_3: status.phase_3 ?? null,
    total_auditable_wages_cents: wagesCents,
    ...(details ? { red_rows: details.redRows, has_more_red_rows: details.hasMore } : {}),
  }
  const text = `${columnsText(columns)}\n${outcomeText(report, status, wagesCents, details)}`
  if (status.status !== 'failed') {
    const later = found instanceof CliError ? found : failure
    return later ? { json, text, failure: later } : { json, text }
  }
  const why = `File ${status.file_id} failed: ${printable(status.error ?? 'no reason given')}`
  return { json, text, failure: new CliError(why, { error: 'File Failed', exitCode: EXIT.fileFailed }) }
}

function columnsText(columns: PayrollCsv['columns']): string {
  const { known, unknown } = describeColumns(columns)
  return printable(`Columns: ${known}; not understood, and passed on as they are called: ${unknown}`)
}

function outcomeText(
  report: Readonly<Record<string, unknown>>,
  status: FileStatus,
  wagesCents: number | null,
  details: AgentDetails | null,
): string {
  const red = numberOf(status.phase_1?.red_rows) ?? 0
  const parts = [
    `File ${status.file_id} (${printable(String(report.file_name))}): ${printable(status.status)}`,
    rows(
      [
        {
          phase: '1 validation',
          status: status.phase_1?.status,
          rows: status.phase_1 && `${String(status.phase_1.green_rows ?? 0)} green, ${red} red`,
          amount: '',
        },
        {
          phase: '2 auditable wages',
          status: status.phase_2?.status,
          rows: status.phase_2?.processed_rows,
          amount: wagesCents === null ? '' : amount(wagesCents),
        },
        {
          phase: '3 premium',
          status: status.phase_3?.status,
          rows: status.phase_3?.processed_rows,
          amount: amount(status.phase_3?.total_premium_cents),
        },
      ],
      { phase: 'phase', status: 'status', rows: 'rows', amount: 'amount' },
      'phases',
    ),
  ]
  if (details && details.redRows.length > 0) {
    parts.push('Red rows:', redRowsText(details))
  } else if (red > 0) {
    parts.push(`${red} red ${red === 1 ? 'row' : 'rows'}; give --agent-key-file to see the reasons.`)
  }
  return parts.join('\n')
}

function redRowsText({ redRows, hasMore }: AgentDetails): string {
  const reasons = redRows.flatMap(({ row_number, employee_name, reasons: why }) =>
    why.map((reason) => ({ row: row_number, employee: employee_name, ...reason })),
  )
  const columns = {
    row: 'row',
    employee: 'employee',
    field: 'field',
    reason: 'message',
    suggestion: 'suggestion',
  }
  const table = rows(reasons, columns, 'reasons')
  return hasMore ? `${table}\nThere are more red rows than these ${redRows.length}.` : table
}

function isDone(status: unknown): boolean {
  return status === 'complete' || status === 'completed'
}

function numberOf(value: unknown): number | null {
  return typeof value === 'number' ? value : null
}
