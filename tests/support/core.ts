import { createHmac } from 'node:crypto'
import { type Answer, askOperator, operate, type SeedableService, type SeededTenant, send } from './seed.ts'

/** An employee record that the default policy accepts: 1,000.50 dollars, premium 25.01. */
export function employeeRecord(overrides: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    employee_id: 'E-1',
    first_name: 'Ada',
    last_name: 'Baker',
    class_code: '8810',
    state: 'CA',
    gross_wages: 1000.5,
    ...overrides,
  }
}

/** A report body about the seeded employer and policy. */
export function reportBody(
  tenant: Pick<SeededTenant, 'fein' | 'policyNumber'>,
  overrides: Record<string, unknown> = {},
): Record<string, unknown> {
  return {
    employer_fein: tenant.fein,
    policy_number: tenant.policyNumber,
    employees: [employeeRecord()],
    pay_period: { start_date: '2026-01-01', end_date: '2026-01-15' },
    ...overrides,
  }
}

/** POST to the core API. */
export function post(
  service: SeedableService,
  path: string,
  headers: Record<string, string>,
  body: unknown,
): Promise<Answer> {
  return send(`${service.coreUrl}${path}`, { method: 'POST', headers, body })
}

/** POST /payroll/reports. */
export function report(
  service: SeedableService,
  tenant: SeededTenant,
  overrides: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): Promise<Answer> {
  const body = reportBody(tenant, overrides)
  return post(service, '/api/v1/payroll/reports', { ...tenant.clientHeaders, ...headers }, body)
}

/** GET /files/status/:file_id. */
export function status(service: SeedableService, tenant: SeededTenant, fileId: string): Promise<Answer> {
  return send(`${service.coreUrl}/api/v1/files/status/${fileId}`, { headers: tenant.clientHeaders })
}

/** Lower-case hex HMAC-SHA256 over `${timestamp}.${body}`. */
export function sign(secret: string, timestamp: number | string, body: string): string {
  return createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex')
}

/** The service's time in milliseconds. */
export async function serviceTime(service: SeedableService): Promise<number> {
  const { now } = await operate(service, 'GET', '/clock')
  return typeof now === 'number' ? now : Date.parse(now)
}

/** An event as the operator API shows it. */
export interface ShownEvent {
  readonly position: string | number
  readonly stream: string
  readonly revision: number
  readonly type: string
  readonly data: Record<string, unknown>
  readonly metadata: Record<string, unknown>
}

/** What each log has, as far as it was looked at, by service and type: what stands there stays as it is. */
const seen = new Map<string, Awaited<ReturnType<typeof eventsAfter>>>()

/** All events of the log in order, or those of one type; what was read before is not read again. */
export async function allEvents(service: SeedableService, type?: string): Promise<ShownEvent[]> {
  const key = `${service.opsUrl} ${service.operatorToken} ${type}`
  const { events: before, place: after } = seen.get(key) ?? { events: [], place: null }
  const { events, place } = await eventsAfter(service, after, type === undefined ? {} : { type })
  const all = [...before, ...events]
  seen.set(key, { events: all, place })
  return [...all]
}

/** Every event of a stream, in order. */
export async function streamEvents(service: SeedableService, stream: string): Promise<ShownEvent[]> {
  const events: ShownEvent[] = []
  let from: number | null = 0
  while (from !== null) {
    const { body }: { body: { data: ShownEvent[]; pagination: { next: number | null } } } = await send(
      `${service.opsUrl}/ops/v1/streams/${stream}?from=${from}&limit=20`,
      { headers: { Authorization: `Bearer ${service.operatorToken}` } },
    )
    events.push(...body.data)
    from = body.pagination.next
  }
  return events
}

/** Events behind a place in the log, and the place behind the last one. */
export async function eventsAfter(
  service: SeedableService,
  after: string | null,
  filter: Record<string, string> = {},
): Promise<{ events: ShownEvent[]; place: string | null }> {
  const events: ShownEvent[] = []
  let place = after
  for (let from = after; ; ) {
    const query = new URLSearchParams({ limit: '1000', ...filter, ...(from === null ? {} : { from }) })
    const { body }: Answer = await askOperator(service, 'GET', `/events?${query}`)
    if (body?.ok !== true) throw new Error(`The operator API refused to list events: ${body?.message}`)
    events.push(...body.data)
    place = body.data.length === 0 ? place : String(body.data.at(-1).position)
    if (body.pagination.next === null) return { events, place }
    from = String(body.pagination.next)
  }
}

/** How far the log of each service goes, as far as it was looked at: events and the place behind them. */
const heads = new Map<string, { count: number; place: string | null }>()

/** Events that were stored since the log was looked at last. */
async function newEvents(service: SeedableService): Promise<readonly ShownEvent[]> {
  const { opsUrl } = service
  const { count, place: after } = heads.get(opsUrl) ?? { count: 0, place: null }
  const { events, place } = await eventsAfter(service, after)
  heads.set(opsUrl, { count: count + events.length, place })
  return events
}

/** How far the log goes once all has come to rest: it changes exactly when a request stores something. */
export async function logHead(service: SeedableService): Promise<string> {
  await operate(service, 'POST', '/drain', { timeout_seconds: 600 })
  await newEvents(service)
  const { count, place } = heads.get(service.opsUrl)!
  return `${count} events, last at ${place}`
}

/** What was stored since the log was looked at last, once all has come to rest. */
export async function storedSince(service: SeedableService): Promise<readonly ShownEvent[]> {
  await operate(service, 'POST', '/drain')
  return newEvents(service)
}

/** What a run stores, with all that follows from it. */
export async function storedBy(
  service: SeedableService,
  run: () => Promise<unknown>,
): Promise<readonly ShownEvent[]> {
  await storedSince(service)
  await run()
  return storedSince(service)
}
