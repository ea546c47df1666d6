// npm run demo: a quarter's payroll from a CSV file to the premium, and a policy sold by payment link, on a service of
// its own.
//
//   npm run demo                 runs through and removes everything it made
//   npm run demo -- --keep       leaves the service running until Ctrl-C, to repeat the requests
//   npm run demo -- --file F     another payroll file in the form of examples/payroll-2026-q3.csv

import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { parse } from 'csv-parse/sync'

const root = fileURLToPath(new URL('..', import.meta.url))
const program = join(root, 'dist', 'main.js')
const cli = join(root, 'dist', 'cli.js')
const READY_WITHIN_MS = 60_000
const PROCESSED_WITHIN_MS = 60_000
const DELIVERED_WITHIN_MS = 60_000

const { keep, file } = parseArgs({
  options: {
    keep: { type: 'boolean', default: false },
    file: { type: 'string', default: join(root, 'examples', 'payroll-2026-q3.csv') },
  },
}).values

// ---- what the reader sees

const coloured = process.stdout.isTTY === true && !process.env.NO_COLOR
const paint = (code) => (text) => (coloured ? `\x1b[${code}m${text}\x1b[0m` : text)
const bold = paint('1')
const dim = paint('2')
const green = paint('32')
const red = paint('31')
const say = (text = '') => process.stdout.write(`${text}\n`)
const heading = (text) => say(`\n${bold(text)}\n`)
const dollars = (cents) => `$${(cents / 100).toLocaleString('en-US', { minimumFractionDigits: 2 })}`

/** A POSIX shell word. */
const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`

/** Prints a line that goes into a shell as it is, before any request that uses what it sets. */
const shellVariables = (values) =>
  say(
    dim(
      Object.entries(values)
        .map(([name, value]) => `${name}=${value}`)
        .join(' '),
    ),
  )

/**
 * Sends a request after showing it as a curl line.
 * @param shown.headers headers as the shell writes them, with variables in place of secrets.
 * @param shown.bodyFile where the body stands when it is too long to show.
 */
async function request(method, url, { headers = {}, shown = {}, body, bodyFile, quiet = false } = {}) {
  const sent = body === undefined ? undefined : JSON.stringify(body)
  if (!quiet) {
    const parts = ['curl -s']
    if (method !== 'GET') parts.push(`-X ${method}`)
    parts.push(url)
    for (const [name, value] of Object.entries(shown)) parts.push(`-H "${name}: ${value}"`)
    if (sent !== undefined) {
      parts.push(`-H "Content-Type: application/json"`, `-d ${bodyFile ? `@${bodyFile}` : quoted(sent)}`)
    }
    say(parts.join(' '))
  }
  const response = await fetch(url, {
    method,
    headers: { ...headers, ...(sent === undefined ? {} : { 'content-type': 'application/json' }) },
    body: sent,
  })
  const answer = await response.json()
  if (!response.ok) {
    throw new Error(`${method} ${url} answered ${response.status}: ${JSON.stringify(answer)}`)
  }
  return { status: response.status, answer }
}

/** Prints an answer on one line, long lists and texts shortened. */
function show(status, answer) {
  const text = JSON.stringify(answer, (_key, value) =>
    Array.isArray(value) && value.length > 3 ? [...value.slice(0, 2), `… ${value.length - 2} more`] : value,
  )
  say(`${green(String(status))} ${dim(text.length > 600 ? `${text.slice(0, 600)} …` : text)}\n`)
}

// ---- the service

// request bodies stay beside the data directory: nothing personal stands in plain text inside it
const workDir = await mkdtemp(join(tmpdir(), 'compstream-demo-'))
const dataDir = join(workDir, 'data')
// started as root, the embedded server runs as another user, who has to get through
if (process.getuid?.() === 0) await chmod(workDir, 0o711)
let service = null
let stopping = null
const interrupted = new AbortController()

/** Starts the built service as its users do: a process, free ports, a data directory of its own. */
function startService() {
  const ports = ['MCP_PORT', 'CORE_PORT', 'PAYMENTS_PORT', 'PORTAL_PORT', 'OPS_PORT']
  service = spawn(process.execPath, ['--enable-source-maps', '--max-old-space-size=2000', program], {
    env: {
      PATH: process.env.PATH,
      DATA_DIR: dataDir,
      HOST: '127.0.0.1',
      CLOCK: 'system',
      LOG_LEVEL: 'info',
      TECHNICAL_DEADLINE_SCALE: process.env.TECHNICAL_DEADLINE_SCALE,
      // webhooks go to public addresses only, unless told otherwise
      WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
      ...Object.fromEntries(ports.map((name) => [name, '0'])),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    // Ctrl-C reaches this program, which stops the service in order
    detached: true,
  })
  const lines = []
  return new Promise((resolve, reject) => {
    const failed = (why) =>
      reject(new Error(`The service did not become ready: ${why}\n${lines.slice(-10).join('\n')}`))
    const timer = setTimeout(() => failed(`nothing after ${READY_WITHIN_MS / 1000} s`), READY_WITHIN_MS)
    service.once('exit', (code) => {
      clearTimeout(timer)
      failed(`it ended with code ${code}`)
    })
    createInterface({ input: service.stderr }).on('line', (line) => lines.push(line))
    createInterface({ input: service.stdout }).on('line', (line) => {
      lines.push(line)
      if (lines.length > 100) lines.shift()
      if (!line.includes('"ready"')) return
      clearTimeout(timer)
      resolve(JSON.parse(line))
    })
  })
}

/** Ends what was started beside the service. */
const others = []

/** Stops the service; the same ending however often it is asked for. */
function stopService() {
  stopping ??= (async () => {
    for (const end of others) end()
    if (service && service.exitCode === null && service.signalCode === null) {
      const ended = new Promise((resolve) => service.once('exit', resolve))
      service.kill('SIGTERM')
      await ended
    }
    await rm(workDir, { recursive: true, force: true })
  })()
  return stopping
}

// ---- the payroll file

const NUMBER = /^-?\d+(\.\d+)?$/
const NUMERIC = new Set(['gross_wages', 'hours_worked', 'rate', 'overtime'])

/** Employee records of a CSV file: empty cells are left out, amounts become numbers where they are numbers. */
async function employeeRecords(path) {
  const rows = parse(await readFile(path, 'utf8'), { columns: true, skip_empty_lines: true, trim: true })
  return rows.map((row) =>
    Object.fromEntries(
      Object.entries(row)
        .filter(([, value]) => value !== '')
        .map(([name, value]) => [name, NUMERIC.has(name) && NUMBER.test(value) ? Number(value) : value]),
    ),
  )
}

// ---- the story

async function demo() {
  if (!existsSync(program)) throw new Error('dist/main.js is missing: run npm run build first')
  say(bold('compstream demo: a quarter of payroll, from a CSV file to the premium'))
  const started = performance.now()
  const { mcp, core, payments, ops } = await startService()
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  say(`Service ready after ${seconds} s on a new data directory, embedded PostgreSQL included.`)
  say(dim('Every request below is a line for a shell; so are the lines that set its variables.\n'))

  heading('1. Who is involved (operator API)')
  const tokenFile = join(dataDir, 'operator-token')
  const token = (await readFile(tokenFile, 'utf8')).trim()
  shellVariables({ OPERATOR_TOKEN: `$(cat ${tokenFile})` })
  const operator = {
    headers: { authorization: `Bearer ${token}` },
    shown: { Authorization: 'Bearer $OPERATOR_TOKEN' },
  }
  const create = async (path, body) => {
    const { status, answer } = await request('POST', `${ops}/ops/v1/${path}`, { ...operator, body })
    show(status, answer)
    return answer.data
  }
  const { tenant_id } = await create('tenants', { name: 'Basin Range Insurance Services' })
  const { carrier_id } = await create('carriers', { tenant_id, name: 'Granite Peak Mutual' })
  const { payroll_company_id } = await create('payroll-companies', { tenant_id, name: 'Ledgerline Payroll' })
  const { employer_id } = await create('employers', {
    tenant_id,
    environment: 'sandbox',
    legal_name: 'Sierra Ridge Builders LLC',
    fein: '12-3456789',
    payroll_company_ids: [payroll_company_id],
  })
  const policy = JSON.parse(await readFile(join(root, 'examples', 'policy.json'), 'utf8'))
  const endOfThisYear = `${new Date().getUTCFullYear()}-12-31`
  const policyBody = {
    ...policy,
    employer_id,
    carrier_id,
    // reports find active policies only, and the example is also run after the year it is about
    expiration_date: policy.expiration_date > endOfThisYear ? policy.expiration_date : endOfThisYear,
  }
  const policyFile = join(workDir, 'policy.json')
  await writeFile(policyFile, JSON.stringify(policyBody))
  const issued = await request('POST', `${ops}/ops/v1/policies`, {
    ...operator,
    body: policyBody,
    bodyFile: policyFile,
  })
  show(issued.status, issued.answer)

  heading('2. Who may report: an API client and an agent of the payroll company')
  const client = await create('api-clients', {
    tenant_id,
    name: 'Ledgerline core integration',
    environment: 'sandbox',
    products: ['payroll'],
  })
  const agent = await request('POST', `${mcp}/api/v1/agents`, {
    ...operator,
    body: {
      agent_name: 'Payroll assistant',
      entity_type: 'payroll_company',
      entity_id: payroll_company_id,
      sandbox: false,
      created_by: 'demo',
    },
  })
  show(agent.status, agent.answer)

  heading('3. Submit the payroll (core API)')
  const employees = await employeeRecords(file)
  const dates = employees
    .flatMap((row) => [row.pay_period_start, row.pay_period_end])
    .filter(Boolean)
    .sort()
  const report = {
    employer_fein: '12-3456789',
    policy_number: policy.policy_number,
    pay_period: { start_date: dates[0], end_date: dates.at(-1) },
    employees,
  }
  const reportFile = join(workDir, 'report.json')
  await writeFile(reportFile, JSON.stringify(report), { mode: 0o600 })
  say(
    `${employees.length} rows of ${file.startsWith(root) ? file.slice(root.length) : file}; as JSON: ${reportFile}`,
  )
  shellVariables({ CLIENT_ID: client.client_id, CLIENT_SECRET: client.client_secret })
  const partner = {
    headers: { 'x-client-id': client.client_id, 'x-client-secret': client.client_secret },
    shown: { 'X-Client-ID': '$CLIENT_ID', 'X-Client-Secret': '$CLIENT_SECRET' },
  }
  const submittedAt = performance.now()
  const submitted = await request('POST', `${core}/api/v1/payroll/reports`, {
    ...partner,
    body: report,
    bodyFile: reportFile,
  })
  show(submitted.status, submitted.answer)
  const fileId = submitted.answer.file_id ?? submitted.answer.report_id
  if (submitted.answer.file_id === null) {
    say(`More than 500 employees: processing goes on in the background under the report_id ${fileId}.\n`)
  }

  heading('4. Watch the phases')
  const statusUrl = `${core}/api/v1/files/status/${fileId}`
  const status = await watchPhases(statusUrl, partner, submittedAt)
  show(200, status)

  heading('5. What is wrong with the red rows (tool server, as an AI agent asks)')
  shellVariables({ AGENT_KEY: agent.answer.api_key })
  const called = await request('POST', `${mcp}/mcp`, {
    headers: { authorization: `Bearer ${agent.answer.api_key}` },
    shown: { Authorization: 'Bearer $AGENT_KEY' },
    body: {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'get_validation_errors', arguments: { file_id: fileId } },
    },
  })
  if (called.answer.error) throw new Error(`get_validation_errors: ${called.answer.error.message}`)
  const found = JSON.parse(called.answer.result.content[0].text)
  show(called.status, called.answer)
  for (const { row_number, employee_name, reasons } of found.errors) {
    for (const { field, message, suggestion } of reasons) {
      // the valid values are in the suggestion, too
      const [what] = message.split('; valid values')
      const row = `row ${String(row_number).padStart(5)}`
      say(
        `${red(row)}  ${employee_name.padEnd(20)}  ${field.padEnd(12)}  ${what}\n${dim(`           ${suggestion}`)}`,
      )
    }
  }
  if (found.has_more) say(dim('… and more'))

  heading('6. The result')
  say(
    `rows       ${found.total_rows}: ${green(`${found.green_rows} green`)}, ${red(`${found.red_rows} red`)}`,
  )
  say(`premium    ${bold(dollars(status.phase_3.total_premium_cents))}`)

  heading('7. Sell a policy: employer and policy in one call, and a payment link (payments API, sandbox)')
  const broker = await create('api-clients', {
    tenant_id,
    name: 'Harbor Lane Brokers',
    environment: 'sandbox',
    products: ['payments'],
    carrier_ids: [carrier_id],
  })
  shellVariables({ BROKER_ID: broker.client_id, BROKER_SECRET: broker.client_secret })
  const seller = {
    headers: { 'x-client-id': broker.client_id, 'x-client-secret': broker.client_secret },
    shown: { 'X-Client-ID': '$BROKER_ID', 'X-Client-Secret': '$BROKER_SECRET' },
  }
  const sell = async (path, body) => {
    const { status, answer } = await request('POST', `${payments}/api/v1/${path}`, { ...seller, body })
    show(status, answer)
    return answer.data
  }
  // nobody listens there: while a partner develops, deliveries are forwarded instead
  await sell('webhooks', { url: 'https://127.0.0.1:8443/webhooks', events: ['payment.completed'] })
  const nextWebhook = await forwardWebhooks(payments, broker)
  const ids = await sell('intake/policies', {
    idempotency_key: 'application-10442',
    employer: {
      legal_name: 'Tidewater Joinery LLC',
      fein: '93-1840277',
      address: { line1: '12 Quay St', city: 'Astoria', state: 'OR', zip: '97103' },
    },
    policy: {
      state: 'OR',
      class_code: '2812',
      effective_date: `${new Date().getUTCFullYear()}-01-01`,
      annual_premium_cents: 412_300,
    },
  })
  const link = await sell('payment-links', {
    ...ids,
    premium_cents: 412_300,
    payment_type: 'ONE_TIME',
    payment_context: 'full_payment',
    customer: { name: 'Tidewater Joinery LLC', email: 'office@tidewater.example' },
    metadata: { application: '10442' },
  })

  heading('8. The payment, and the webhook that tells of it')
  await sell(`payment-links/${link._id}/simulate-completion`, {})
  const { event, signature } = await nextWebhook()
  say(`received   ${bold(event.type)} ${dim(`X-Webhook-Signature: ${signature}`)}`)
  say(`           ${green('signature verified')} ${dim(JSON.stringify(event.data))}`)
  const sold = await request('GET', `${ops}/ops/v1/policies/${ids.policy_id}`, { ...operator, quiet: true })
  say(`policy     ${sold.answer.data.policy_number}: ${green(sold.answer.data.status)}`)
}

/**
 * Listens on a port of its own for what `compstream webhooks listen` forwards there.
 * @returns when that is under way: a function that waits for the first webhook whose signature is right.
 */
async function forwardWebhooks(payments, { client_id, client_secret }) {
  const { verifyWebhook } = await import('compstream/client')
  let secret = null
  let accept = null
  const first = new Promise((resolve) => {
    accept = resolve
  })
  const receiver = createServer(async (incoming, response) => {
    const parts = []
    for await (const part of incoming) parts.push(part)
    try {
      // the bytes as they came: a body that was parsed and written again has another signature
      const event = verifyWebhook({ payload: Buffer.concat(parts), headers: incoming.headers, secret })
      response.writeHead(200).end()
      accept({ event, signature: incoming.headers['x-webhook-signature'] })
    } catch {
      response.writeHead(400).end()
    }
  })
  await new Promise((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  others.push(() => {
    receiver.close()
    receiver.closeAllConnections()
  })
  const forwardTo = `http://127.0.0.1:${receiver.address().port}`
  say(
    `COMPSTREAM_PAYMENTS_URL=${payments} COMPSTREAM_CLIENT_ID=$BROKER_ID COMPSTREAM_CLIENT_SECRET=$BROKER_SECRET ` +
      `npx compstream webhooks listen --forward-to ${forwardTo}`,
  )
  const args = [cli, 'webhooks', 'listen', '--forward-to', forwardTo, '--poll', '0.2', '--json']
  const listening = spawn(process.execPath, args, {
    env: {
      PATH: process.env.PATH,
      COMPSTREAM_PAYMENTS_URL: payments,
      COMPSTREAM_CLIENT_ID: client_id,
      COMPSTREAM_CLIENT_SECRET: client_secret,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  others.push(() => listening.kill('SIGINT'))
  const said = []
  listening.stderr.on('data', (text) => said.push(text))
  const began = new Promise((resolve, reject) => {
    listening.once('exit', (code) =>
      reject(new Error(`webhooks listen ended with ${code}: ${said.join('')}`)),
    )
    createInterface({ input: listening.stdout }).once('line', (line) => resolve(JSON.parse(line)))
  })
  secret = (await began).listening.secret
  say(dim('What comes from now on is forwarded, signed with a secret of the listener.\n'))
  return async () => {
    const late = delay(DELIVERED_WITHIN_MS, null, { signal: interrupted.signal, ref: false })
    const received = await Promise.race([first, late])
    if (received === null) throw new Error('The webhook did not come in time')
    return received
  }
}

/** Follows a file until its last phase is done, one line for each change. */
async function watchPhases(url, partner, submittedAt) {
  const deadline = performance.now() + PROCESSED_WITHIN_MS
  let last = ''
  for (let first = true; ; first = false) {
    const { answer } = await request('GET', url, { ...partner, quiet: !first })
    const phases = [1, 2, 3].map((n) => answer[`phase_${n}`]?.status ?? 'pending')
    const line = `file ${answer.status.padEnd(10)}  ${phases.map((phase, n) => `phase ${n + 1} ${phase.padEnd(8)}`).join('  ')}`
    const elapsed = `${((performance.now() - submittedAt) / 1000).toFixed(2)} s`
    if (line !== last) say(`${dim(elapsed.padStart(7))}  ${line.trimEnd()}`)
    last = line
    if (answer.status === 'failed') throw new Error(`The file failed: ${answer.error}`)
    if (phases[2] === 'complete') return answer
    if (performance.now() > deadline) throw new Error('The file was not processed in time')
    await delay(20, undefined, { signal: interrupted.signal })
  }
}

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => {
    interrupted.abort()
    stopService().finally(() => process.exit(keep && signal === 'SIGINT' ? 0 : 130))
  })
}

try {
  await demo()
  if (keep) {
    say(`\nThe service keeps running, its files in ${workDir}. Ctrl-C ends it and removes them.`)
    await new Promise((resolve) => service.once('exit', resolve))
    if (!stopping) throw new Error('The service ended by itself')
  } else {
    await stopService()
    say(dim('\nService stopped, its files removed. Run it with -- --keep to repeat the requests.'))
  }
} catch (error) {
  if (!interrupted.signal.aborted) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
    process.exitCode = 1
  }
  await stopService()
}
