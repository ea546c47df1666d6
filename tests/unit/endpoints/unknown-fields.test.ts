import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { APIS } from '../../../interfaces/descriptions.ts'
import { Schemas } from '../../../interfaces/endpoints/schemas.ts'
import { checkClosed, nearest, unknownIn } from '../../../interfaces/endpoints/unknown-fields.ts'
import { agentCredentialEndpoints } from '../../../interfaces/mcp/access/agent-credentials.ts'
import { jsonSchemaOf } from '../../../interfaces/mcp/arguments.ts'
import { tools } from '../../../interfaces/mcp/tools.ts'
import { DescribedFaults } from '../../support/described-faults.ts'

/** What endpoints and tools take, by its name, with its description. */
const taken = [...Object.values(APIS).flat(), ...agentCredentialEndpoints].flatMap(
  ({ operation, query, body, line }) => {
    const bodies = body instanceof z.ZodUnion ? (body.options as readonly z.ZodType[]) : [body]
    return [query, line, ...bodies].flatMap((schema) => {
      if (!schema) return []
      const schemas = new Schemas()
      const described = schemas.of(schema, 'input')
      return [[operation, schema, described, schemas.components] as const]
    })
  },
)
const asked = tools.map(({ name, input }) => [name, input, jsonSchemaOf(input), {}] as const)

describe('a misspelt field is refused with its path and the one that is meant, wherever there are no others', () => {
  test.each([...taken, ...asked])('%s', (_name, schema, described, components) => {
    for (const { field, value, meant } of new DescribedFaults(components, {}).misspelt(described)) {
      const result = checkClosed(schema, value, 'field')
      expect('faults' in result && result.faults[0]).toEqual({
        field,
        message: `is an unknown field; did you mean ${meant}?`,
        kind: 'unknown',
      })
    }
  })
})

test.for([
  ['fees_cents', ['premium_cents', 'fee_cents', 'fee_breakdown'], 'fee_cents'],
  ['effectiveDate', ['employer_id', 'effective_date', 'description'], 'effective_date'],
  ['settlementType', ['name', 'settlement_type'], 'settlement_type'],
  ['dryRun', ['employer_id', 'rows', 'dry_run'], 'dry_run'],
  ['types', ['type', 'from', 'to'], 'type'],
  ['polciy_id', ['employer_id', 'policy_id'], 'policy_id'],
  ['Amount', ['amount_cents', 'account'], 'amount_cents'],
  ['zip', ['employer_id', 'rows'], null],
  ['é', ['to', 'rows'], null],
] as const)('%s is likeliest meant for the nearest known name', ([name, known, meant]) => {
  expect(nearest(name, known)).toBe(meant)
})

test('a name that is near none is refused with those that are known', () => {
  const told = (schema: z.ZodType, value: object) => unknownIn(schema, value, 'argument')[0]?.message
  expect(told(z.object({ to: z.string(), rows: z.array(z.string()) }), { wages: 1 })).toBe(
    'is an unknown argument; known here: to, rows',
  )
  expect(told(z.object({}), { wages: 1 })).toBe('is an unknown argument; none is taken here')
  const many = Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`field_${index}`, z.string()]))
  expect(told(z.object(many), { wages: 1 })).toMatch(/field_48, field_49 and 10 more$/)
})

test('names of every object’s prototype are unknown like others', () => {
  expect(unknownIn(z.object({ to: z.string() }), JSON.parse('{"constructor":1}'), 'field')).toMatchObject([
    { field: 'constructor', kind: 'unknown' },
  ])
})

test('what takes any field has no unknown ones', () => {
  const open = z.object({
    metadata: z.record(z.string(), z.string()).nullish(),
    rows: z.array(z.unknown()),
    record: z.looseObject({ id: z.string() }),
  })
  expect(
    unknownIn(open, { metadata: { a: 'b' }, rows: [{ a: 1 }], record: { id: 'a', b: 1 } }, 'field'),
  ).toEqual([])
})

test('of many unknown fields a few are told, with as much of their names as is shown', () => {
  const many = Object.fromEntries(
    Array.from({ length: 1_000 }, (_, index) => [`${index}`.padEnd(500, 'x'), 1]),
  )
  const told = unknownIn(z.object({ to: z.string() }), many, 'field')
  expect(told).toHaveLength(20)
  expect(told[0]!.field).toHaveLength(61)
})
