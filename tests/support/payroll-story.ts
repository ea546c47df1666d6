import { expect } from 'vitest'
import { allEvents, employeeRecord, post, report, reportBody, type ShownEvent, sign, status } from './core.ts'
import {
  type Answer,
  callTool,
  operate,
  type SeedableService,
  type SeededTenant,
  seedTenant,
} from './seed.ts'

/** What happened at a service, and how it reads. */
export interface Story {
  readonly tenant: SeededTenant
  /** A small file with a red row, and one that a process manager took through its phases. */
  readonly files: readonly { readonly id: string; readonly status: unknown }[]
  /** Why the row of the small file is red, as its agent reads it. */
  readonly redRow: unknown
  /** The employee register with what is sealed in it opened; one of the two persons is erased. */
  readonly register: unknown
  readonly connection: { readonly connection_id: string; readonly secret: string }
  /** The log when everything had happened, in order. */
  readonly log: readonly StoredAs[]
}

/** What identifies an event and everything before it in its stream. */
interface StoredAs {
  readonly position: string
  readonly stream: string
  readonly revision: number
  readonly hash: unknown
}

const LARGE = 1_200

/** Has a quarter of payroll life happen: setup, reports small and large, a sync, an erasure. */
export async function makeStory(service: SeedableService): Promise<Story> {
  const tenant = await seedTenant(service)
  const connection = await operate(service, 'POST', '/inbound-connections', {
    tenant_id: tenant.tenantId,
    environment: 'live',
  })
  const small = await report(service, tenant, {
    employees: [employeeRecord(), employeeRecord({ employee_id: 'E-2', class_code: '9999' })],
  })
  const large = await report(service, tenant, {
    employees: Array.from({ length: LARGE }, (_, index) => employeeRecord({ employee_id: `L-${index}` })),
  })
  const sync = await post(service, '/api/v1/employees/sync', tenant.clientHeaders, {
    employer_id: tenant.employerId,
    employees: [
      { employee_id: 'E-1', action: 'hire', name: 'Quillon Ashgrove', hire_date: '2026-01-05' },
      { employee_id: 'E-9', action: 'hire', name: 'Oriel Vantongeren', hire_date: '2026-01-06' },
    ],
  })
  expect([small.status, large.status, sync.status]).toEqual([202, 202, 202])
  await operate(service, 'POST', '/erasures', { employer_id: tenant.employerId, employee_id: 'E-9' })
  await operate(service, 'POST', '/drain')
  const files: Story['files'][number][] = []
  for (const id of [small.body.file_id, large.body.report_id, sync.body.file_id] as string[]) {
    files.push({ id, status: (await status(service, tenant, id)).body })
  }
  expect(files[1]!.status).toMatchObject({ status: 'NORMALIZED', phase_3: { processed_rows: LARGE } })
  const register = await registerOf(service, tenant)
  expect(JSON.stringify(register)).toContain('Quillon Ashgrove')
  expect(JSON.stringify(register)).not.toContain('Oriel Vantongeren')
  const redRow = await redRowOf(service, tenant, files[0]!.id)
  expect(JSON.stringify(redRow)).toContain('9999')
  return { tenant, files, redRow, register, connection, log: await storedLog(service) }
}

/** Holds a service, possibly another one on other storage, against everything that the story left. */
export async function expectStory(service: SeedableService, story: Story): Promise<void> {
  const log = await storedLog(service)
  expect(log.slice(0, story.log.length)).toEqual(story.log)
  expect(await operate(service, 'POST', '/audit/verify')).toMatchObject({
    verified: true,
    first_problem: null,
  })
  for (const { id, status: before } of story.files) {
    expect((await status(service, story.tenant, id)).body, id).toEqual(before)
  }
  expect(await registerOf(service, story.tenant)).toEqual(story.register)
  expect(await redRowOf(service, story.tenant, story.files[0]!.id)).toEqual(story.redRow)
}

/** Has the story go on with a report of every kind; what is appended comes after everything before. */
export async function continueStory(service: SeedableService, story: Story): Promise<void> {
  const before = await storedLog(service)
  const { tenant } = story
  const employees = Array.from({ length: LARGE }, (_, index) => employeeRecord({ employee_id: `N-${index}` }))
  const answers = [await report(service, tenant), await report(service, tenant, { employees })]
  answers.push(await push(service, story))
  expect(answers.map((answer) => answer.status)).toEqual([202, 202, 202])
  await operate(service, 'POST', '/drain')
  const counts = [1, LARGE, 1]
  for (const [index, { body }] of answers.entries()) {
    expect((await status(service, tenant, body.file_id ?? body.report_id)).body).toMatchObject({
      status: 'NORMALIZED',
      phase_3: { status: 'complete', processed_rows: counts[index] },
    })
  }
  const after = await storedLog(service)
  expect(after.slice(0, before.length)).toEqual(before)
  expect(BigInt(after[before.length]!.position)).toBeGreaterThan(BigInt(before.at(-1)!.position))
  const projections = await operate(service, 'GET', '/projections')
  for (const one of projections) {
    expect(one).toMatchObject({ state: 'active', lag: { events: 0 }, parked_streams: 0 })
  }
  expect(await operate(service, 'POST', '/audit/verify')).toMatchObject({ verified: true })
}

/** A signed push: it is accepted only by who can open the connection's secret in the vault. */
async function push(service: SeedableService, { tenant, connection }: Story): Promise<Answer> {
  const { now } = await operate(service, 'GET', '/clock')
  const timestamp = typeof now === 'number' ? now : Date.parse(now)
  const body = JSON.stringify(reportBody(tenant))
  return post(
    service,
    `/api/v1/webhook/inbound/${connection.connection_id}`,
    {
      'X-Webhook-Timestamp': String(timestamp),
      'X-Webhook-Signature': sign(connection.secret, timestamp, body),
    },
    body,
  )
}

/** The log as it is stored, without what reading it adds. */
export async function storedLog(service: SeedableService): Promise<StoredAs[]> {
  return (await allEvents(service as Parameters<typeof allEvents>[0])).map(storedAs)
}

function storedAs({ position, stream, revision, metadata }: ShownEvent): StoredAs {
  return { position: String(position), stream, revision, hash: metadata.hash }
}

async function registerOf(service: SeedableService, tenant: SeededTenant): Promise<unknown> {
  return operate(service, 'GET', `/employers/${tenant.employerId}/register?reveal=true`)
}

async function redRowOf(service: SeedableService, tenant: SeededTenant, fileId: string): Promise<unknown> {
  const { result } = await callTool(service, tenant.apiKey, 'get_validation_errors', { file_id: fileId })
  return result
}
