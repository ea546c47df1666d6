import { beforeAll, describe, expect, test } from 'vitest'
import { logHead } from '../../support/core.ts'
import {
  bodySchemaOf,
  type Call,
  type Callers,
  type Described,
  faultOf,
  newCallers,
  operationsOf,
  sendTo,
  takesKey,
} from '../../support/described-calls.ts'
import { DescribedFaults } from '../../support/described-faults.ts'
import type { DescribedApi } from '../../support/described-hosts.ts'
import { descriptionOf, validatorOf } from '../../support/descriptions.ts'
import { newSession, tokenOf } from '../../support/payment-sessions.ts'
import { operate } from '../../support/seed.ts'
import { type SharedService, sharedService } from '../../support/service.ts'

/**
 * What the description of an operation forbids is refused with 400, which names the field, and stores nothing: a
 * required field that is missing, one of another kind or beyond its limits, one that is not known, in the body or the
 * query, with a new key, too. An id in a path that is none, or that of nothing, is 404, which names it likewise.
 */

let service: SharedService
let callers: Callers
/** Of what a caller must know to be heard at all. */
let parts: Readonly<Record<string, string>>

beforeAll(async () => {
  service = await sharedService()
  callers = await newCallers(service)
  const { connection, sold, tenant } = callers
  const token = tokenOf(await newSession(service, sold))
  parts = { connection_id: connection.connection_id, tenant_id: tenant.tenantId, token }
})

/** Values of fields with rules beyond what their schemas say. */
const VALUES = { effective_date: ['2026-01-31'], routing_number: ['021000021'] }
/** Requests at once. */
const AT_ONCE = 8

describe.each<DescribedApi>(['core', 'operator', 'payments'])('the %s API', (api) => {
  let head: string
  beforeAll(async () => {
    await operate(service, 'POST', '/drain')
    head = await logHead(service)
  })

  const faults = new DescribedFaults(descriptionOf(api).components.schemas!, VALUES)
  const forbidden = operationsOf(api)
    .map(([name, described]) => [name, described, forbiddenOf(described, faults)] as const)
    .filter(([, , calls]) => calls.length > 0)

  test.each(forbidden)('%s', async (_name, described, calls) => {
    for (let at = 0; at < calls.length; at += AT_ONCE) {
      await Promise.all(calls.slice(at, at + AT_ONCE).map((call) => expectRefused(described, call)))
    }
  })

  const named = operationsOf(api).flatMap(([name, described]) =>
    namesIn(described).map((field) => [`${name}: ${field}`, described, field] as const),
  )

  test.each(named)('%s that names nothing', async (_name, described, field) => {
    for (const id of NAMES_NOTHING) await expectNothing(described, field, id, faults)
  })

  test('stores nothing of all that', async () => {
    expect(await logHead(service)).toBe(head)
  })
})

/** A request with one fault. */
interface Forbidden extends Call {
  /** What its refusal must name. */
  readonly field: string
}

async function expectRefused(described: Described, { field, ...call }: Forbidden): Promise<void> {
  const path = call.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => parts[name] ?? '0'.repeat(24))
  const { status, body, text } = await sendTo(callers, described, { ...call, path })
  const told = `${JSON.stringify({ ...call, path }).slice(0, 2000)} is answered ${status} ${text}`
  expect(status, told).toBe(400)
  expect(described.api === 'core' ? wordsOfCore(field) : ['Bad Request'], told).toContain(body.error)
  const fits = validatorOf(
    `${described.api} closed`,
    `${described.pointer}/responses/400/content/application~1json/schema`,
  )
  expect(fits(body), told).toBe(true)
  // of what is no object, all fields are missing; without its method, it is another session that is meant
  if (field === '' || field === 'billing_method') return
  // of an object that is empty, what it lacks
  expect(` ${body.message} `, told).toMatch(new RegExp(`[ ]${field.replaceAll(/[.[\]]/g, '\\$&')}[ ,.]`))
  const named = (body.errors ?? [body]).map((one: { field: string }) => one.field)
  expect(
    named.some((one: string) => one === field || one.startsWith(`${field}.`)),
    told,
  ).toBe(true)
}

/** What no parameter of a path names: what has the form of no id, and ids that were given to nothing. */
const NAMES_NOTHING = ['no such id', '0'.repeat(24), '00000000-0000-4000-8000-000000000000', "../%00'é"]

/** The parameters of an operation's path. */
function namesIn({ operation }: Described): string[] {
  return operation.parameters.flatMap((one) => ('name' in one && one.in === 'path' ? [one.name] : []))
}

async function expectNothing(
  described: Described,
  field: string,
  id: string,
  faults: DescribedFaults,
): Promise<void> {
  const schema = bodySchemaOf(described.operation)
  const path = described.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(name === field ? id : (parts[name] ?? '0'.repeat(24))),
  )
  const call = { path, query: {}, key: null, body: schema && faults.whole(schema) }
  const { status, body, text } = await sendTo(callers, described, call)
  const told = `${path} is answered ${status} ${text}`
  expect(status, told).toBe(404)
  const nothing = namesIn(described).filter((name) => name === field || !parts[name])
  expect(nothing, told).toContain(body.field)
  expect(body.code, told).toMatch(/^\w+$/)
}

function wordsOfCore(field: string): readonly string[] {
  if (field === 'employees')
    return ['Missing required fields', 'Invalid employees', 'employees must be non-empty']
  if (field.startsWith('employees[')) return ['Invalid employees', 'Invalid employee record']
  return ['Missing required fields', 'Unknown field', `Invalid ${field.split('.')[0]}`]
}

/** The same few requests each time, of which the description forbids every one. */
function forbiddenOf(described: Described, faults: DescribedFaults): Forbidden[] {
  const { path, operation } = described
  const schema = bodySchemaOf(operation)
  const fitting: Call = { path, query: {}, key: null, body: schema && faults.whole(schema) }
  const seen = new Set<string>()
  const isNew = (call: Forbidden) => {
    const known = seen.size
    return faultOf(described, call) !== null && seen.add(JSON.stringify(call)).size > known
  }
  const calls: Forbidden[] = []
  for (const one of schema ? faults.of(schema) : []) {
    calls.push({ ...fitting, field: one.field, body: one.value })
  }
  for (const parameter of operation.parameters) {
    if (!('name' in parameter) || parameter.in !== 'query') continue
    const { name: field } = parameter
    for (const { value } of faults.of(parameter.schema, field)) {
      if (typeof value !== 'object') calls.push({ ...fitting, field, query: { [field]: String(value) } })
    }
  }
  for (const key of takesKey(operation) ? ['', 'two words', 'x'.repeat(256)] : []) {
    calls.push({ ...fitting, field: 'Idempotency-Key', key })
  }
  return [...calls.filter(isNew), ...unknownIn(described, fitting)]
}

/** What no description has to name as forbidden: a parameter, and a field where there is no body, or a new key. */
function unknownIn({ method, path, operation }: Described, fitting: Call): Forbidden[] {
  // whoever has no page's token is not heard
  if (path.startsWith('/public/') && !path.includes('{token}')) return []
  const field = 'unexpected'
  const calls: Forbidden[] = [{ ...fitting, field, query: { [field]: '1' } }]
  const key = takesKey(operation) ? 'never-used' : null
  if (key !== null || (method !== 'GET' && !operation.requestBody)) {
    calls.push({ ...fitting, field, key, body: { ...(fitting.body as object | undefined), [field]: 1 } })
  }
  return calls
}
