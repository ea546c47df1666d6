import {
  type EventFilter,
  readLogEvents,
  readStreamEvents,
  stateAt,
} from '../../application/audit/streams.ts'
import { verifyLog, verifyStream } from '../../application/audit/verification.ts'
import { dataKeysToErase, eraseSubject, personSubjects } from '../../application/operations/erasure.ts'
import { recordOperatorAction } from '../../application/operations/operator-actions.ts'
import { employeeRegister } from '../../application/parties/employee-register.ts'
import { parseTime } from '../../domain/kernel/calendar.ts'
import { isId } from '../../domain/kernel/ids.ts'
import { employer } from '../../domain/parties/employer.ts'
import type { Route } from '../http/server.ts'
import { badRequest, type Fields, flagParameter, wholeNumberParameter } from './fields.ts'
import { listAnswer, pageOf } from './old-lists.ts'
import { accepted, type Call, notFound, type OperatorHost, operation } from './operations.ts'
import type { OperatorServices } from './services.ts'

const DEFAULT_EVENTS = 100
const MAX_EVENTS = 1000
/** Beyond every log: where positions are places in files, a petabyte. */
const MAX_POSITION = 10n ** 15n - 1n
const MAX_REVISION = 2 ** 31 - 1
const STREAM = /^[\x21-\x7e]{1,255}$/
const EVENT_TYPE = /^\w{1,100}$/

/** What auditors read: events, states, the employee register, the hash chains; and erasures. */
export function auditRoutes(
  host: OperatorHost,
  { patientLog }: Pick<OperatorServices, 'patientLog'>,
): readonly Route[] {
  const { app } = host
  /** Recorded before anything is shown: nobody sees a masked value without a trace. */
  const recordReveal = (call: Call, target: string, details: Record<string, string | number | null>) =>
    recordOperatorAction(app, { action: 'reveal', target, details }, call.context())

  return [
    operation(host, 'GET', '/streams/:stream', async (call) => {
      const stream = streamName(call.parameter('stream'))
      const { limit, reveal, filter } = readingOf(call.query)
      const from = wholeNumberParameter(call.query, 'from', { missing: 0, min: 0, max: MAX_REVISION })
      const page = await readStreamEvents(app, stream, { from, limit, filter, reveal })
      if (!page) throw notFound('There is no such stream')
      if (reveal) await recordReveal(call, stream, { from, limit, values: page.revealed })
      return { data: page.events, pagination: { next: page.next } }
    }),
    operation(host, 'GET', '/streams/:stream/state', async (call) => {
      const point = pointOf(call.query)
      const stream = streamName(call.parameter('stream'))
      const state = await stateAt(app, stream, point)
      if (!state) throw notFound('There is no such stream, or it was empty at that point')
      return { data: state }
    }),
    operation(host, 'GET', '/events', async (call) => {
      const { limit, reveal, filter } = readingOf(call.query)
      const after = positionParameter(call.query, 'from')
      const page = await readLogEvents(app, { after, limit, filter, reveal })
      if (reveal) {
        await recordReveal(call, 'events', { from: String(after), limit, values: page.revealed })
      }
      return { data: page.events, pagination: { next: page.next } }
    }),

    operation(host, 'GET', '/employers/:employer_id/register', async (call) => {
      const page = pageOf(call.query)
      const reveal = flagParameter(call.query, 'reveal')
      const id = call.parameter('employer_id')
      const found = isId(id) ? (await app.commands.load(employer, id)).state : null
      if (!found) throw notFound('There is no such employer')
      const register = await employeeRegister(app, id, { ...page, reveal })
      if (reveal) {
        const details = { page: page.page, limit: page.limit, values: register.items.length }
        await recordReveal(call, `employer-${id}/register`, details)
      }
      return listAnswer(page, register)
    }),

    operation(host, 'POST', '/audit/verify', async (call) => {
      const { fields } = await call.body()
      const stream = fields.optionalText('stream')
      if (stream === null) return { data: await verifyLog({ log: patientLog }, call.signal) }
      const report = await verifyStream({ log: patientLog }, streamName(stream))
      if (!report) throw notFound('There is no such stream')
      return { data: report }
    }),

    operation(host, 'POST', '/erasures', async (call) => {
      const { fields } = await call.body()
      const dryRun = fields.flag('dry_run', false)
      const subjects = await subjectsOf(fields)
      if (dryRun) {
        let dataKeys = 0
        for (const subject of subjects) dataKeys += accepted(await dataKeysToErase(app, subject))
        const what = { subject: subjects[0], subjects, data_keys: dataKeys }
        return { data: { ...what, erased: false, dry_run: true } }
      }
      for (const subject of subjects) accepted(await eraseSubject(app, subject, call.context()))
      return { status: 201, data: { subject: subjects[0], subjects, erased: true } }
    }),
  ]

  /** The data subject that is named, or those that a person of an employer stands under. */
  async function subjectsOf(fields: Fields): Promise<readonly string[]> {
    if (fields.raw('employer_id') === null) return [fields.text('subject')]
    if (fields.raw('subject') !== null) throw badRequest('subject and employer_id cannot be given together')
    const employerId = fields.id('employer_id')
    const identity = {
      employeeId: fields.optionalText('employee_id'),
      ssn: fields.optionalText('ssn'),
      firstName: fields.optionalText('first_name'),
      lastName: fields.optionalText('last_name'),
    }
    if (Object.values(identity).every((value) => value === null)) {
      throw badRequest('employee_id, ssn, or first_name and last_name is required with employer_id')
    }
    if (!(await app.commands.load(employer, employerId)).state) {
      throw notFound('employer_id: there is no such employer')
    }
    const subjects = await personSubjects(app, employerId, identity)
    if (subjects.length === 0) throw notFound('No such data subject')
    return subjects
  }
}

/** What no stream can be called is not looked up. @throws HttpError 404. */
function streamName(text: string): string {
  if (!STREAM.test(text)) throw notFound('There is no such stream')
  return text
}

function readingOf(query: ReadonlyMap<string, string>): {
  limit: number
  reveal: boolean
  filter: EventFilter
} {
  const limit = wholeNumberParameter(query, 'limit', { missing: DEFAULT_EVENTS, min: 1 })
  const type = query.get('type')
  const tenantId = query.get('tenant_id')
  const correlationId = query.get('correlation_id')
  if (type !== undefined && !EVENT_TYPE.test(type)) throw badRequest('type must be the name of an event type')
  if (tenantId !== undefined && !isId(tenantId)) throw badRequest('tenant_id must be an id')
  return {
    limit: Math.min(limit, MAX_EVENTS),
    reveal: flagParameter(query, 'reveal'),
    filter: {
      ...(type === undefined ? {} : { type }),
      ...(tenantId === undefined ? {} : { tenantId }),
      ...(correlationId === undefined ? {} : { correlationId }),
    },
  }
}

function pointOf(query: ReadonlyMap<string, string>): { revision?: number; asOf?: number } {
  const asOf = query.get('as_of')
  if (query.has('revision')) {
    if (asOf !== undefined) throw badRequest('as_of and revision cannot be given together')
    return { revision: wholeNumberParameter(query, 'revision', { missing: 0, min: 0 }) }
  }
  if (asOf === undefined) return {}
  // a plus sign that was not encoded arrives as a blank
  const time = parseTime(asOf.replace(' ', '+'))
  if (time === null)
    throw badRequest('as_of must be a time in ISO 8601 with a zone, like 2026-01-31T12:00:00Z')
  return { asOf: time }
}

function positionParameter(query: ReadonlyMap<string, string>, name: string): bigint {
  const value = query.get(name)
  if (value === undefined) return 0n
  if (!/^\d+$/.test(value))
    throw badRequest(`${name} must be a position of the log: a whole number of 0 or more`)
  const position = BigInt(value)
  if (position > MAX_POSITION) throw badRequest(`${name} must not exceed ${MAX_POSITION}`)
  return position
}
