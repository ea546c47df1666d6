// @module-tag each-log
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { newAgeKeys } from '../../../infrastructure/crypto/age.ts'
import { cli } from '../../support/cli.ts'
import { ConsoleVisitor, proofIn } from '../../support/console.ts'
import { employeeRecord, post, report } from '../../support/core.ts'
import { partner } from '../../support/payments.ts'
import { askOperator, operate, type SeededTenant, seedEmployer, seedTenant } from '../../support/seed.ts'
import { type SharedService, sharedService } from '../../support/service.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'

const ROWS = 1_200

let service: SharedService
let tenant: SeededTenant
const folder = temporaryDirectory()
let env: Record<string, string>
/** Tokens by role. */
const tokens: Record<string, string> = {}
let small: string
let large: string

/** Everybody but the person: none of these texts may get out. */
const other = (n: number) => ({
  ...{ employee_id: `X-${n}`, first_name: `Xaver${n}x`, last_name: 'Xylander', gross_wages: 7_770_000 + n },
})
const ada = { employee_id: 'E-1', first_name: 'Ada', last_name: 'Quillfeather', ssn: '123-45-6789' }

beforeAll(async () => {
  service = await sharedService()
  tenant = await seedTenant(service)
  for (const role of ['auditor', 'support']) {
    const { token } = await operate(service, 'POST', '/operators', { name: role, role })
    tokens[role] = token
  }
  env = { COMPSTREAM_OPS_URL: service.opsUrl, OPERATOR_TOKEN: tokens.auditor! }
  const first = await report(service, tenant, {
    employees: [other(1), ada, other(2)].map((one) => employeeRecord(one)),
  })
  const second = await report(service, tenant, {
    employees: Array.from({ length: ROWS }, (_, n) => employeeRecord(n === 700 ? ada : other(n))),
  })
  const sync = await post(service, '/api/v1/employees/sync', tenant.clientHeaders, {
    employer_id: tenant.employerId,
    employees: [
      { employee_id: 'X-1', action: 'hire', name: 'Xaver1x Xylander', hire_date: '2026-01-05' },
      { employee_id: 'E-1', action: 'hire', name: 'Ada Quillfeather', hire_date: '2026-01-06' },
    ],
  })
  expect([first.status, second.status, sync.status]).toEqual([202, 202, 202])
  small = first.body.file_id
  large = second.body.file_id ?? second.body.report_id
  await operate(service, 'POST', '/drain')
  // whoever opened it is a recipient
  const opening = `/streams/payrollFile-${small}?reveal=true&reason=Checked`
  expect((await askOperator(as('auditor'), 'GET', opening)).status).toBe(200)
})

const as = (role: string) => ({ ...service, operatorToken: tokens[role]! })
const { recipient } = newAgeKeys()
type Line = ReturnType<typeof JSON.parse>

/** Asks by command and opens the file, without a service. @returns its lines. */
async function answerTo(name: string, args: readonly string[]): Promise<readonly Line[]> {
  const [sealed, key, out] = ['age', 'key', 'jsonl'].map((ending) => join(folder, `${name}.${ending}`))
  const asked = await cli(
    ['--json', 'subject-access', 'export', ...args, '--reason', 'Asked on 3 March', '--out', sealed!],
    { env },
  )
  expect([asked.code, asked.stderr]).toEqual([0, ''])
  await writeFile(key!, `# made by compstream\n${asked.json().key}\n`)
  const bytes = await readFile(sealed!)
  expect(bytes.toString('latin1')).not.toMatch(/Ada|Quillfeather|Xylander|person\/|employer/)
  const open = ['--json', 'subject-access', 'open', sealed!, '--key-file', key!, '--out', out!]
  const opened = await cli(open)
  expect([opened.code, opened.stderr]).toEqual([0, ''])
  expect((await stat(out!)).mode & 0o777).toBe(0o600)
  const lines = (await readFile(out!, 'utf8')).trim().split('\n')
  expect(opened.json()).toMatchObject({ is_whole: true, lines: lines.length - 1 })
  expect((await cli(open)).stderr).toContain('nothing is overwritten')
  return lines.map((line) => JSON.parse(line))
}

const ofAda = () => ['--employer-id', tenant.employerId, '--employee-id', 'E-1']

describe('a person', () => {
  test('is answered with everything that is kept about them, in order, and with nothing of anybody else', async () => {
    const lines = await answerTo('ada', ofAda())
    const text = JSON.stringify(lines)
    for (const others of ['Xaver', 'Xylander', 'X-', tenant.fein, 'payroll@bakery.example']) {
      expect([others, text.includes(others)]).toEqual([others, false])
    }
    // their wages, as a value: ids and hashes may have any digits
    expect(text).not.toMatch(/[:[,]"?777\d{4}/)
    const events = lines.filter(({ kind }) => kind === 'event')
    const positions = events.map(({ position }) => BigInt(position))
    expect(positions).toEqual([...positions].sort((a, b) => (a < b ? -1 : 1)))
    const rows = events.flatMap(({ stream, data }) =>
      (data.rows ?? []).map((row: Line) => [stream, row.n, row.person]),
    )
    expect(rows).toEqual([
      [`payrollFile-${small}`, 2, ada],
      [`payrollFile-${large}`, 701, ada],
    ])
    const wages = events.flatMap(({ data }) => data.wages?.wages ?? data.wages ?? [])
    expect(wages.map((one: unknown[]) => one.slice(0, 2))).toEqual([
      [2, 100_050],
      [701, 100_050],
    ])
    const changes = events.flatMap(({ data }) => data.changes ?? [])
    expect(changes).toEqual([
      expect.objectContaining({ record: expect.objectContaining({ name: 'Ada Quillfeather' }) }),
    ])
    expect(events.map(({ sentence }) => sentence)).toContain('Auditable wages of the person are $1,000.50.')

    const states = lines.filter(({ kind }) => kind === 'state')
    expect(states).toContainEqual(
      expect.objectContaining({
        of: 'employee-register',
        state: expect.objectContaining({
          status: 'employed',
          record: expect.objectContaining({ name: 'Ada Quillfeather' }),
        }),
      }),
    )
    expect(states.filter(({ of }) => of === 'payroll-files').length).toBe(3)
    const recipients = lines.filter(({ kind }) => kind === 'recipient')
    expect(recipients.map(({ to }) => to)).toEqual(['operator', 'integration events'])
    expect(recipients[0]!.opened).toBe(`payrollFile-${small}`)
    expect(lines[0]).toMatchObject({ kind: 'about', subjects: [{ status: 'kept' }] })
    expect(lines.at(-1)).toMatchObject({ kind: 'manifest', streams: 3, events: events.length })
  })

  test('is answered only after it was recorded who asks, and why', async () => {
    const subject = (await answerTo('recorded', ofAda()))[0]!.subjects[0].subject
    const { body } = await askOperator(
      service,
      'GET',
      `/events?type=OperatorActed&subject=${subject}&limit=1000`,
    )
    const { data, metadata } = body.data.at(-1)
    expect(data).toEqual({
      action: 'reveal',
      target: subject,
      details: {
        as: 'subject access',
        streams: expect.any(Number),
        recipient: expect.stringMatching(/^age1/),
        reason: 'Asked on 3 March',
      },
    })
    const me = await askOperator(as('auditor'), 'GET', '/operators/me')
    expect(metadata.actor).toEqual({ type: 'operator', id: me.body.data.operator_id })
  })

  test('is answered by the console, which shows the key once', async () => {
    const visitor = new ConsoleVisitor(service)
    await visitor.signIn(tokens.auditor!)
    const asked = await visitor.get('/console/subject-access')
    const path = '/console/subject-access'
    const person = { employer_id: tenant.employerId, employee_id: 'E-1', reason: 'Asked on 3 March' }
    const without = await visitor.ask('POST', '/console/subject-access', {
      form: proofIn(asked, path),
      employer_id: tenant.employerId,
    })
    expect([without.status, without.text.includes('reason is required')]).toEqual([400, true])
    const refused = await visitor.ask('POST', '/console/subject-access', {
      ...{ ...person, employee_id: 'Nobody' },
      form: proofIn(without, path),
    })
    expect([refused.status, refused.text.includes('No such data subject')]).toEqual([400, true])
    const shown = await visitor.ask('POST', '/console/subject-access', {
      ...person,
      form: proofIn(refused, path),
    })
    const key = /AGE-SECRET-KEY-1[0-9A-Z]+/.exec(shown.text)![0]
    const [, to] = /name="recipient" value="(age1[0-9a-z]+)"/.exec(shown.text)!
    const file = await fetch(`${service.opsUrl}/console/subject-access/file`, {
      method: 'POST',
      headers: { cookie: visitor.cookie, 'Content-Type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ ...person, recipient: to!, form: proofIn(shown, `${path}/file`) }),
    })
    expect([file.status, file.headers.get('content-disposition')]).toEqual([
      200,
      'attachment; filename="subject-access.age"',
    ])
    const [sealed, out] = [join(folder, 'console.age'), join(folder, 'console.jsonl')]
    await writeFile(sealed, Buffer.from(await file.arrayBuffer()))
    const opened = await cli(['subject-access', 'open', sealed, '--key', key, '--out', out])
    expect([opened.code, opened.stderr]).toEqual([0, ''])
    expect(await readFile(out, 'utf8')).toContain('Quillfeather')
  })

  test('that was erased is answered with what stays, and nothing can be opened any more', async () => {
    const erased = { employer_id: tenant.employerId, employee_id: 'X-2' }
    await operate(service, 'POST', '/erasures', erased)
    const lines = await answerTo('erased', ['--employer-id', tenant.employerId, '--employee-id', 'X-2'])
    expect(JSON.stringify(lines)).not.toMatch(/Xaver|Quillfeather/)
    expect(lines[0]!.subjects).toEqual([
      expect.objectContaining({ status: 'erased', what_stays: expect.stringContaining('nobody can open') }),
    ])
    expect(lines.map(({ type }) => type)).toContain('PersonalDataErased')
    const rows = lines.flatMap(({ data }) => data?.rows ?? [])
    expect(rows.map(({ person, gross_wages }: Line) => [person, gross_wages])).toEqual([
      ['(erased)', 7_770_002],
      ['(erased)', 7_770_002],
    ])
    expect(lines.at(-1)).toMatchObject({ values_opened: 0 })
  })
})

test('an employer that is a person is answered with what is its own, and with nobody it employs', async () => {
  const { data_subject } = await operate(service, 'GET', `/employers/${tenant.employerId}`)
  const lines = await answerTo('employer', [data_subject])
  const text = JSON.stringify(lines)
  expect(text).not.toMatch(/Xaver|Xylander|Quillfeather|person\//)
  expect(lines.find(({ type }) => type === 'EmployerRegistered')!.data).toMatchObject({
    fein: tenant.fein,
    contact_email: 'payroll@bakery.example',
  })
  expect(lines.find(({ of }) => of === `employer-${tenant.employerId}`)!.state).toMatchObject({
    fein: tenant.fein,
  })
  expect(lines.some(({ type }) => type === 'PolicyIssued')).toBe(true)
})

test('a bank account that moved is in its new employer’s answer from then on, and no longer in that of the old one', async () => {
  const [before, after] = await Promise.all([seedEmployer(service, tenant), seedEmployer(service, tenant)])
  const banks = async (method: string, path: string, body?: object) => {
    const answer = await partner(service, tenant.clientHeaders, method, `/bank-accounts${path}`, body)
    expect([answer.status < 300, answer.text]).toEqual([true, expect.any(String)])
    return answer.body.data
  }
  const { employerId: employer_id } = before
  const account = { user_id: 'user-moved', name: 'Of the first', bank_name: 'First Bank', employer_id }
  const { _id } = await banks('POST', '', account)
  await banks('PATCH', `/${_id}`, { employer_id: after.employerId, bank_name: 'Second Bank' })
  await banks('PATCH', `/${_id}`, { name: 'Of the second' })
  await banks('DELETE', `/${_id}`)
  await operate(service, 'POST', '/drain')
  const answerOf = async ({ employerId }: { readonly employerId: string }) => {
    const { data_subject } = await operate(service, 'GET', `/employers/${employerId}`)
    return answerTo(employerId, [data_subject])
  }
  const stream = `bankAccount-${_id}`
  const told = (lines: readonly Line[]) =>
    lines.filter((line) => line.stream === stream).map(({ type }) => type)
  const old = await answerOf(before)
  expect(told(old)).toEqual(['BankAccountCreated'])
  expect(old.find(({ of }) => of === stream)).toBeUndefined()
  expect(JSON.stringify(old)).not.toMatch(new RegExp(`${after.employerId}|Of the second|Second Bank`))
  const now = await answerOf(after)
  expect(told(now)).toEqual(['BankAccountChanged', 'BankAccountChanged', 'BankAccountDeleted'])
  expect(now.find(({ of }) => of === stream)!.state).toMatchObject({
    employer_id: after.employerId,
    name: 'Of the second',
    bank_name: 'Second Bank',
  })
  expect(JSON.stringify(now)).not.toMatch(new RegExp(`${employer_id}|user-moved|Of the first`))
})

describe('a request', () => {
  const ask = (body: object, role = 'auditor') => askOperator(as(role), 'POST', '/subject-access', body)
  const nobody = { subject: `person/${'0'.repeat(24)}`, reason: 'Asked', recipient }

  test.each<[string, object, number, string | undefined]>([
    ['about nobody who is known', nobody, 404, undefined],
    ['about no employer who is known', { ...nobody, subject: `employer/${'0'.repeat(24)}` }, 404, undefined],
    ['without a reason', { ...nobody, reason: undefined }, 400, 'reason'],
    ['with an empty reason', { ...nobody, reason: ' ' }, 400, 'reason'],
    ['without a recipient', { ...nobody, recipient: undefined }, 400, 'recipient'],
    [
      'for a recipient that is none',
      { ...nobody, recipient: `${recipient.slice(0, -1)}b` },
      400,
      'recipient',
    ],
    ['that names nobody', { reason: 'Asked', recipient }, 400, 'subject'],
    ['with a subject that is none', { ...nobody, subject: 'Ada' }, 400, 'subject'],
  ])('%s is refused, and records nothing', async (_, body, status, field) => {
    const before = await askOperator(service, 'GET', '/events?type=OperatorActed&limit=1000')
    const answer = await ask(body)
    expect([answer.status, answer.body.field]).toEqual([status, field])
    const after = await askOperator(service, 'GET', '/events?type=OperatorActed&limit=1000')
    expect(after.body.data.length).toBe(before.body.data.length)
  })

  test('about rows that identify nobody is refused: they may be of several people', async () => {
    const body = {
      employees: [
        {
          ...employeeRecord(),
          employee_id: undefined,
          first_name: undefined,
          last_name: undefined,
          shoe: '9',
        },
      ],
    }
    const { body: sent } = await report(service, tenant, body)
    await operate(service, 'POST', '/drain')
    const { body: file } = await askOperator(service, 'GET', `/streams/payrollFile-${sent.file_id}`)
    expect(file.data[0].data.rows.length).toBe(1)
    const proof = await askOperator(service, 'GET', `/audit/proofs/${file.data[0].event_id}`)
    const leaf = Buffer.from(proof.body.data.leaf, 'base64').toString()
    const [subject] = /person\/[0-9a-f]{24}/.exec(leaf)!
    const answer = await ask({ ...nobody, subject })
    expect([answer.status, answer.body.field]).toEqual([400, 'subject'])
    expect(answer.body.message).toContain('identify nobody')
  })

  test('of support is refused', async () => {
    expect((await ask(nobody, 'support')).status).toBe(403)
  })
})
