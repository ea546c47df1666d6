import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type CliRun, cli } from '../../support/cli.ts'
import { installationName } from '../../support/installation.ts'
import { newFein, newPolicyNumber } from '../../support/seed.ts'
import { type RunningService, startService } from '../../support/service.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'

let service: RunningService
const directory = temporaryDirectory()
let env: Record<string, string>

/** What the first test creates and the others work with. */
const made = {
  tenantId: '',
  carrierId: '',
  companyId: '',
  employerId: '',
  policyId: '',
  policyNumber: newPolicyNumber(),
  fein: newFein(),
  clientId: '',
  clientSecret: '',
  agentKey: '',
}

const RATES =
  '[{"class_code":"8810","state":"CA","rate_per_100":"2.50"},{"class_code":"5403","state":"CA","rate_per_100":"10"}]'

beforeAll(async () => {
  service = await startService()
  env = {
    COMPSTREAM_OPS_URL: service.opsUrl,
    COMPSTREAM_CORE_URL: service.coreUrl,
    COMPSTREAM_MCP_URL: service.mcpUrl,
    // where one process keeps its token, that is where the command line finds it
    ...(installationName === 'embedded'
      ? { DATA_DIR: service.dataDir }
      : { OPERATOR_TOKEN: service.operatorToken }),
  }
})
afterAll(() => service?.stop())

const run = (...args: string[]): Promise<CliRun> => cli(args, { env })

/** Runs a verb with --json, which must succeed, and returns what it printed. */
async function ran(...args: string[]): Promise<ReturnType<typeof JSON.parse>> {
  const { code, stderr, json } = await run(...args, '--json')
  expect([code, stderr]).toEqual([0, ''])
  return json()
}

test('sets up everything that payroll reporting needs', async () => {
  made.tenantId = (await ran('tenants', 'create', '--name', 'Acme')).tenant_id
  const tenant = ['--tenant-id', made.tenantId]
  const carrier = await ran('carriers', 'create', ...tenant, '--name', 'Mutual', '--settlement-type', 'fbo')
  made.carrierId = carrier.carrier_id
  made.companyId = (await ran('payroll-companies', 'create', ...tenant, '--name', 'Pay')).payroll_company_id
  const employer = await ran(
    'employers',
    'create',
    ...[...tenant, '--legal-name', 'Bakery LLC', '--fein', made.fein, '--contact-email', 'a@b.example'],
    ...['--address', '{"line1":"1 Main St","city":"Reno","state":"NV","zip":"89501"}'],
  )
  expect(employer).toMatchObject({ fein: made.fein, address: { line1: '1 Main St', zip: '89501' } })
  made.employerId = employer.employer_id
  const policy = await ran(
    'policies',
    'create',
    ...['--employer-id', made.employerId, '--carrier-id', made.carrierId],
    ...['--policy-number', made.policyNumber],
    ...['--effective-date', '2020-01-01', '--expiration-date', '2099-12-31'],
    ...['--class-codes', '8810,5403', '--states', 'CA', '--states', 'NV'],
    ...['--rates', RATES, '--fees', '{"label":"Expense constant","amount_cents":16000}'],
  )
  expect(policy).toMatchObject({
    class_codes: ['8810', '5403'],
    states: ['CA', 'NV'],
    rates: JSON.parse(RATES),
    fees: [{ label: 'Expense constant', amount_cents: 16000 }],
  })
  made.policyId = policy.policy_id
  const client = await ran('api-clients', 'create', ...tenant, '--name', 'Partner', '--products', 'payroll')
  expect(client.products).toEqual(['payroll'])
  made.clientId = client.client_id
  made.clientSecret = client.client_secret
  const linked = await ran('employers', 'link', made.employerId, made.companyId)
  expect(linked.payroll_company_ids).toEqual([made.companyId])
  const agent = await ran(
    'agents',
    'create',
    ...['--agent-name', 'Bot', '--entity-type', 'payroll_company', '--entity-id', made.companyId],
  )
  expect(agent.api_key).toMatch(/^mcp_[0-9a-f]{64}$/)
  made.agentKey = agent.api_key
})

describe('payroll submit', () => {
  const submit = (file: string, ...more: string[]) =>
    run(
      'payroll',
      'submit',
      file,
      ...['--employer-fein', made.fein, '--policy-number', made.policyNumber],
      ...['--client-id', made.clientId, '--client-secret', made.clientSecret, ...more],
    )
  const csv = async (text: string) => {
    const file = join(directory, 'payroll.csv')
    await writeFile(file, text)
    return file
  }
  const MIXED =
    'Employee First Name,Employee Last Name,Class Code,State,Gross Wages,Hours,Rate\n' +
    'Ada,Baker,8810,CA,1000.50,,\n' +
    'Ben,Cook,5403,CA,,40,25.50\n' +
    'Cleo,Dee,9999,CA,100,,\n' +
    'Dan,Eck,8810,CA,"$1,000",,\n'

  test('prints phases, green and red rows, wages and premium', async () => {
    const period = ['--period-start', '2026-01-01', '--period-end', '2026-01-15']
    const { code, stdout, stderr } = await submit(await csv(MIXED), ...period, '--agent-key', made.agentKey)
    expect([code, stderr]).toEqual([0, ''])
    // 1,000.50 + 40 x 25.50; 1,000.50 at 2.50 and 1,020.00 at 10 per 100
    expect(stdout).toContain('2 green, 2 red')
    expect(stdout).toContain('$2,020.50')
    expect(stdout).toContain('$127.01')
    expect(stdout).toContain('bakery-llc_2026-01-01_2026-01-15_')
    expect(stdout).toMatch(/3 .* Cleo Dee .* class_code .*9999/)
    expect(stdout).toMatch(/4 .* Dan Eck .* gross_wages/)
    expect(stdout).not.toContain(made.clientSecret)
  })

  test('prints one JSON document with --json', async () => {
    const { code, json } = await submit(await csv(MIXED), '--agent-key', made.agentKey, '--json')
    expect(code).toBe(0)
    expect(json()).toMatchObject({
      file_id: expect.stringMatching(/^[0-9a-f]{24}$/),
      employee_count: 4,
      phase_1: { status: 'complete', green_rows: 2, red_rows: 2 },
      phase_3: { status: 'complete', total_premium_cents: 12701 },
      total_auditable_wages_cents: 202050,
      red_rows: [{ row_number: 3 }, { row_number: 4 }],
      has_more_red_rows: false,
    })
  })

  test('prints what was stored, with code 5, where the tool server does not say why rows are red', async () => {
    const { code, stdout, stderr } = await submit(await csv(MIXED), '--agent-key', 'mcp_none')
    expect([code, stdout]).toEqual([5, expect.stringContaining('$127.01')])
    expect(stderr).toMatch(/^error: The report was stored; why rows are red could not be read: /)
  })

  test('without an agent key says how to see why rows are red', async () => {
    const { code, stdout } = await submit(await csv(MIXED))
    expect(code).toBe(0)
    expect(stdout).toContain('2 red rows; give --agent-key-file to see the reasons.')
  })

  test('waits for the background pipeline of more than 500 rows, the total of which is charged no second time', async () => {
    const rows = Array.from({ length: 1201 }, (_, n) => `E${n},8810,CA,100\n`).join('')
    const text = `employee_id,class_code,state,gross_wages\n${rows},8810,CA,120100\n`
    const { json } = await submit(await csv(text), '--json')
    expect(json()).toMatchObject({
      columns: [{ name: 'employee_id', field: 'employee_id' }, {}, {}, {}],
      employee_count: 1202,
      phase_1: { green_rows: 1201, red_rows: 1 },
      phase_3: { status: 'complete', total_premium_cents: 1201 * 250 },
    })
  })

  test('shows progress on a terminal, and only on stderr', async () => {
    const args = ['--employer-fein', made.fein, '--policy-number', made.policyNumber, '--json']
    const keys = { COMPSTREAM_CLIENT_ID: made.clientId, COMPSTREAM_CLIENT_SECRET: made.clientSecret }
    const shown = await cli(['payroll', 'submit', await csv(MIXED), ...args], {
      env: { ...env, ...keys },
      isTTY: true,
    })
    expect(shown.code).toBe(0)
    expect(shown.stderr).toContain('processing')
    expect(shown.json().employee_count).toBe(4)
  })

  test('tells in the words of the service what is wrong', async () => {
    const file = await csv(MIXED)
    const wrong = await submit(file, '--client-secret', 'service_live_sec_wrong')
    expect([wrong.code, wrong.stdout]).toEqual([1, ''])
    expect(wrong.stderr).toContain('Invalid client_secret')
    const unknown = await submit(file, '--policy-number', 'NONE')
    expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining('Policy not found')])
    expect((await submit(join(directory, 'none.csv'))).stderr).toContain('ENOENT')
  })

  test('says so when the file failed', async () => {
    await ran('policies', 'update', made.policyId, '--rates', JSON.stringify(JSON.parse(RATES).slice(1)))
    try {
      const why = 'The policy has no rate for class code 8810 in CA'
      const { code, stdout, stderr } = await submit(await csv(MIXED))
      expect([code, stdout]).toEqual([3, expect.stringContaining('failed')])
      expect(stderr).toMatch(new RegExp(`^error: File [0-9a-f]{24} failed: ${why}`))
      const { json, ...machine } = await submit(await csv(MIXED), '--json')
      expect([machine.code, json()]).toEqual([
        3,
        expect.objectContaining({ status: 'failed', error: expect.stringContaining(why) }),
      ])
      expect(JSON.parse(machine.stderr)).toMatchObject({ ok: false, error: 'File Failed' })
    } finally {
      await ran('policies', 'update', made.policyId, '--rates', RATES)
    }
  })
})

describe('every other verb', () => {
  test('shows and changes employers, policies and credentials', async () => {
    const renamed = await ran('employers', 'update', made.employerId, '--legal-name', 'Renamed')
    expect(renamed.legal_name).toBe('Renamed')
    expect((await ran('employers', 'show', made.employerId)).legal_name).toBe('Renamed')
    expect((await ran('employers', 'list', '--tenant-id', made.tenantId)).pagination.total).toBe(1)
    expect((await ran('policies', 'list', '--employer-id', made.employerId)).data).toHaveLength(1)
    expect((await ran('agents', 'list', '--entity-id', made.companyId)).count).toBe(1)

    const spare = await ran('api-clients', 'create', '--tenant-id', made.tenantId, '--name', 'Spare')
    const rotated = await ran('api-clients', 'rotate', spare.client_id)
    expect(rotated.client_secret).not.toBe(spare.client_secret)
    expect((await ran('api-clients', 'deactivate', spare.client_id)).status).toBe('deactivated')
    const connection = await ran('inbound-connections', 'create', '--tenant-id', made.tenantId)
    expect((await ran('inbound-connections', 'deactivate', connection.connection_id)).status).toBe(
      'deactivated',
    )
    const agent = (await ran('agents', 'list', '--entity-id', made.companyId)).agents[0]
    expect((await ran('agents', 'revoke', agent.credential_id)).status).toBe('revoked')
    expect((await ran('employers', 'unlink', made.employerId, made.companyId)).payroll_company_ids).toEqual(
      [],
    )
  })

  test('runs the machinery', async () => {
    const before = await ran('clock', 'show')
    const after = await ran('clock', 'advance', '--seconds', '60')
    expect(Date.parse(after.now) - Date.parse(before.now)).toBe(60_000)
    expect((await ran('drain', '--timeout-seconds', '300')).drained).toBe(true)
    expect((await ran('faults', 'inject', 'pipeline', 'hold')).mode).toBe('hold')
    expect((await ran('faults', 'clear', 'pipeline')).times).toBe(0)
    expect((await ran('work', 'list')).counts.failed).toBe(0)
    expect((await ran('work', 'discard', 'payroll-pipeline', 'patrol', '--dry-run')).discarded).toBe(0)
    expect((await ran('projections', 'list')).length).toBeGreaterThanOrEqual(5)

    const { generation } = await ran('projections', 'show', 'policies')
    const rebuilt = await ran('projections', 'rebuild', 'policies', '--follow')
    expect(rebuilt).toMatchObject({ name: 'policies', rebuild: null })
    expect(rebuilt.generation).toBeGreaterThan(generation)
    expect((await ran('projections', 'rollback', 'policies')) !== undefined).toBe(true)
    expect((await ran('projections', 'redrive', 'policies', '--dry-run')) !== undefined).toBe(true)
    await ran('projections', 'pause', 'policies')
    await ran('projections', 'resume', 'policies')
  })

  test('reads and verifies the log', async () => {
    const stream = `policy-${made.policyId}`
    const shown = await ran('streams', 'show', stream, '--limit', '1')
    expect(shown).toMatchObject({ data: [{ type: 'PolicyIssued' }], pagination: { next: 1 } })
    expect((await run('streams', 'show', stream, '--limit', '1')).stdout).toContain('More with --from 1')
    expect((await ran('streams', 'state', stream, '--revision', '0')).state.policy_number).toBe(
      made.policyNumber,
    )
    const events = await ran('events', 'list', '--type', 'EmployerRegistered', '--reveal')
    expect(events.data[0].data.fein).toBe(made.fein)
    expect(await ran('audit', 'verify')).toMatchObject({ verified: true })
  })

  test('erases, once that was confirmed', async () => {
    const { data_subject } = await ran('employers', 'show', made.employerId)
    const erased = async () => (await run('employers', 'show', made.employerId)).stdout.includes('(erased)')
    const dry = { subject: data_subject, data_keys: 1, erased: false, dry_run: true }
    expect(await ran('erase', data_subject, '--dry-run')).toMatchObject(dry)
    // nobody is there to be asked
    expect((await run('erase', data_subject)).code).toBe(2)
    const asked = await cli(['erase', data_subject], { env, isTTY: true, stdin: 'no\n' })
    expect([asked.code, asked.stderr]).toEqual([1, expect.stringContaining(`1 data key of ${data_subject}`)])
    expect(await erased()).toBe(false)

    const confirmed = await cli(['erase', data_subject, '--json'], { env, isTTY: true, stdin: 'yes\n' })
    expect(confirmed.json()).toMatchObject({ subject: data_subject, erased: true })
    expect(await erased()).toBe(true)
    expect((await ran('erase', data_subject, '--dry-run')).data_keys).toBe(0)
    const person = ['--employer-id', made.employerId, '--employee-id', 'E1']
    expect((await ran('erase', ...person, '--yes')).subjects).toEqual([expect.stringMatching(/^person\//)])
    expect((await run('erase', data_subject, ...person, '--yes')).code).toBe(2)
  })
})

// the last: the token of the setting opens nothing afterwards
test('creates, lists, rotates and revokes operators, the first admin, too, but never the last', async () => {
  const kim = await ran('operators', 'create', '--name', 'Kim', '--role', 'admin')
  const jo = await ran('operators', 'create', '--name', 'Jo', '--role', 'support')
  expect(jo).toMatchObject({ name: 'Jo', role: 'support', token: expect.stringMatching(/^op_[0-9a-f]{64}$/) })
  expect((await ran('operators', 'list')).map(({ name }: { name: string }) => name)).toEqual([
    'First admin',
    'Kim',
    'Jo',
  ])
  const as = (token: string, ...args: string[]) =>
    cli([...args, '--json'], { env: { ...env, OPERATOR_TOKEN: token } })
  const refused = await as(jo.token, 'debit-batches', 'run')
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('The role support')])
  const rotated = await ran('operators', 'rotate', jo.operator_id)
  expect((await as(jo.token, 'work', 'list')).code).toBe(1)
  expect((await as(rotated.token, 'work', 'list')).code).toBe(0)
  expect((await ran('operators', 'revoke', jo.operator_id, '--reason', 'Left')).status).toBe('revoked')

  expect((await as(kim.token, 'operators', 'revoke', 'operator')).json()).toMatchObject({ status: 'revoked' })
  expect((await run('work', 'list')).stderr).toContain('Send the token of an operator')
  const last = await as(kim.token, 'operators', 'revoke', kim.operator_id)
  expect([last.code, last.stderr]).toEqual([1, expect.stringContaining('last active admin')])
})
