import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { z } from 'zod'
import { EventRegistry } from '../../../application/commands/event-registry.ts'
import { apiClient } from '../../../domain/access/api-client.ts'
import { inboundConnection } from '../../../domain/access/inbound-connection.ts'
import { tenant } from '../../../domain/access/tenant.ts'
import { aggregates } from '../../../domain/catalogue.ts'
import { type Decider, fold } from '../../../domain/kernel/decider.ts'
import { carrier } from '../../../domain/parties/carrier.ts'
import { payrollCompany } from '../../../domain/parties/payroll-company.ts'
import { policy as policyDecider } from '../../../domain/policies/policy.ts'
import { check } from '../../../interfaces/endpoints/faults.ts'
import { operatorEndpoints } from '../../../interfaces/operator-api/endpoints.ts'
import { operatorApi } from '../../../interfaces/operator-api/host/api.ts'

const ID = 'a'.repeat(24)

function bodyOf(operation: string): z.ZodType {
  return operatorEndpoints.find((one) => one.operation === operation)!.body!
}

/** What the API says to a body; null: nothing. */
function refusal(operation: string, body: object): string | null {
  const result = check(bodyOf(operation), body)
  return 'faults' in result ? operatorApi.refuse(result.faults).message : null
}

function read(operation: string, body: object): unknown {
  return bodyOf(operation).parse(body)
}

const policy = (terms: object) => ({
  employer_id: ID,
  carrier_id: ID,
  policy_number: 'WC-1',
  effective_date: '2026-01-01',
  expiration_date: '2026-12-31',
  ...terms,
})
const rate = (fields: object = {}) => ({ class_code: '8810', state: 'CA', rate_per_100: '1', ...fields })
const DECIMAL = 'must be a decimal as a string, like "0.35", with at most 6 decimals'

describe('terms of a policy', () => {
  test.for([
    [{ states: ['California'] }, 'states[0] must be a 2-letter state abbreviation'],
    [{ rates: [rate({ rate_per_100: '1.1234567' })] }, `rates[0].rate_per_100 ${DECIMAL}`],
    [{ rates: [rate(), rate({ state: 'ca' })] }, 'rates[1].class_code has two rates in CA'],
    [{ effective_date: '2026-02-30' }, 'effective_date must be an existing date in the form YYYY-MM-DD'],
  ] as const)('%j', ([terms, words]) => {
    expect(refusal('issuePolicy', policy(terms))).toBe(words)
  })

  test('are read without repetitions, in upper case where they are words, and as nothing where they are null', () => {
    const terms = {
      class_codes: [' 8810', '8810'],
      states: ['ca', 'CA'],
      rates: null,
      payroll_frequency: 'weekly',
    }
    expect(read('issuePolicy', policy(terms))).toMatchObject({
      class_codes: ['8810'],
      states: ['CA'],
      rates: [],
      payroll_frequency: 'WEEKLY',
      billing_type: null,
    })
    expect(read('changePolicy', { billing_type: null, unknown: 1 })).toEqual({ billing_type: null })
  })
})

describe('an employer', () => {
  test.for([
    [{ address: 5 }, 'address must be an object with line1, city, state and zip'],
    [{ address: ' ' }, 'address must not be empty'],
    [{ address: { zip: '1'.repeat(201) } }, 'address.zip must not be longer than 200 characters'],
    [
      { address: Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`part${n}`, 'x'])) },
      'address must not have more than 20 parts',
    ],
    [{ contact_email: 'nobody' }, 'contact_email must be an email address'],
  ] as const)('is not changed by %j', ([body, words]) => {
    expect(refusal('changeEmployer', body)).toBe(words)
  })

  test('has an address in one line or in parts, of which null is none', () => {
    expect(read('changeEmployer', { address: ' 1 Main St ' })).toEqual({ address: { line1: '1 Main St' } })
    expect(read('changeEmployer', { address: { city: ' Reno', zip: null } })).toEqual({
      address: { city: 'Reno' },
    })
    expect(read('changeEmployer', { address: null })).toEqual({ address: null })
  })
})

test.for([
  ['advanceClock', {}, 'seconds is required: send seconds or to'],
  ['advanceClock', { seconds: 1, to: '2099-01-01T00:00:00Z' }, 'to cannot be given together with seconds'],
  ['redriveWork', { kind: 'advance' }, 'process_manager is required'],
  ['injectFault', { point: 'pipeline' }, 'mode is required'],
] as const)('%s refuses %j', ([operation, body, words]) => {
  expect(refusal(operation, body)).toBe(words)
})

// what an answer does not allow for is a failure of the request that reads it
test.for([
  ['showTenant', tenant],
  ['showCarrier', carrier],
  ['showPayrollCompany', payrollCompany],
  ['showPolicy', policyDecider],
  ['showApiClient', apiClient],
  ['showInboundConnection', inboundConnection],
] as const)('%s answers with what was stored by every release', ([operation, decider]) => {
  const { metadata, samples } = JSON.parse(
    readFileSync(join(import.meta.dirname, '../../golden/events.json'), 'utf8'),
  ) as { metadata: object; samples: readonly { type: string; version: number; data: unknown }[] }
  const registry = new EventRegistry(aggregates)
  const creations = samples.filter(({ type }) => type === decider.events[0]!.name)
  expect(creations.length).toBeGreaterThan(0)
  for (const { type, version, data } of creations) {
    const created = registry.decode({
      position: 1n,
      stream: 'golden-1',
      revision: 0,
      eventId: '00000000-0000-8000-8000-000000000000',
      type,
      data: JSON.stringify(data),
      metadata: JSON.stringify({ ...metadata, schema_version: version }),
    })
    const { answers } = operatorEndpoints.find((one) => one.operation === operation)!
    const state = fold(decider as unknown as Decider<unknown, unknown, typeof created>, [created])
    expect(check(answers[200]!, state)).toHaveProperty('value')
  }
})
