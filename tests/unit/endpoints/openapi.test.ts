import { Validator } from '@seriousme/openapi-schema-validator'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Api } from '../../../interfaces/endpoints/api.ts'
import { type Access, endpointsOf } from '../../../interfaces/endpoints/endpoint.ts'
import {
  date,
  flagText,
  optional,
  rows,
  text,
  time,
  wholeNumberText,
  withDefault,
} from '../../../interfaces/endpoints/fields.ts'
import { type OpenApi, openApiOf } from '../../../interfaces/endpoints/openapi.ts'
import { HttpError } from '../../../interfaces/http/errors.ts'

const api: Api = {
  name: 'sample',
  title: 'Sample API',
  description: 'For tests.',
  prefixes: ['/api/v1', '/api/v2'],
  securitySchemes: { key: { type: 'apiKey', in: 'header', name: 'X-Key', description: 'The key' } },
  bodyLimit: 1000,
  takesEmptyBodies: true,
  objectOf: (value) => value as Record<string, unknown>,
  unreadable: () => null,
  refuse: () => new HttpError(400, null, ''),
  rejected: () => new HttpError(400, null, ''),
  writeError: () => {},
  errorBody: z.object({ error: z.string() }),
  envelope: {
    wrap: (data) => ({ ok: true, data }),
    schema: (data, pagination) =>
      z.object({ ok: z.literal(true), data, ...(pagination ? { pagination } : {}) }),
  },
}
const key: Access<null, null> = {
  security: [{ key: [] }],
  errors: { 401: 'The key is wrong' },
  identify: async () => null,
}
const endpoint = endpointsOf<null, null>(api, key)

const Thing = z.object({ name: z.string(), tags: z.array(z.string()).readonly() }).meta({ id: 'Thing' })
const Row = z.looseObject({ amount: z.number() }).meta({ id: 'Row' })

const things = [
  endpoint({
    operation: 'makeThing',
    route: 'POST /things/{thing_id}',
    summary: 'Make a thing',
    params: z.object({ thing_id: z.string().describe('The id of the thing') }),
    query: z.object({
      limit: wholeNumberText({ min: 1, max: 9, missing: 5 }).describe('How many'),
      deep: flagText(),
    }),
    body: z.object({
      name: text(20),
      size: withDefault(z.enum(['small', 'large']), 'small'),
      note: optional(text()),
      on: date(),
      at: optional(time()),
      rows: rows(Row, 3),
    }),
    idempotent: 'Answered again',
    answers: { 201: Thing, 409: z.object({ taken: z.string() }) },
    errors: { 404: 'There is no such thing' },
    refuses: { 404: ['employer_not_found'] },
    handle: async () => ({ kind: 'invalid', code: '', message: '' }) as never,
  }),
  endpoint({
    operation: 'listThings',
    route: 'GET /things',
    summary: 'List things',
    answers: { 200: z.array(Thing) },
    pagination: z.object({ next: z.string().nullable() }),
    handle: async () => [],
  }),
]

const document = openApiOf(things, '1.2.3', 'https://things.example.com')
const make = document.paths['/api/v1/things/{thing_id}']!.post!
const list = document.paths['/api/v1/things']!.get!

function bodyOf({ responses }: OpenApi['paths'][string][string], status: number) {
  const { schema } = responses[status]!.content['application/json']!
  const name = String(schema.$ref).split('/').at(-1)!
  return name.endsWith('Response') ? document.components.schemas![name]! : schema
}

describe('the description of an API', () => {
  test('is valid OpenAPI 3.1', async () => {
    expect(await new Validator().validate(JSON.parse(JSON.stringify(document)))).toEqual({ valid: true })
    expect(document).toMatchObject({
      openapi: '3.1.1',
      info: { title: 'Sample API', version: '1.2.3', description: 'For tests.\n\n- `X-Key`: The key' },
      servers: [{ url: 'https://things.example.com', description: 'The public address' }],
    })
  })

  test('has every path under every prefix, with names of their own', () => {
    const names = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { operationId }]) => `${operationId}: ${method} ${path}`),
    )
    expect(names).toEqual([
      'makeThing: post /api/v1/things/{thing_id}',
      'listThings: get /api/v1/things',
      'makeThingV2: post /api/v2/things/{thing_id}',
      'listThingsV2: get /api/v2/things',
    ])
    expect(document.paths['/api/v2/things']!.get!.description).toBe('The same as `GET /api/v1/things`.')
  })

  test('refuses two operations of one name', () => {
    expect(() => openApiOf([...things, things[0]!], '1')).toThrow('makeThing')
  })

  test('says what a path, a query and headers take', () => {
    expect(make.parameters).toEqual([
      {
        name: 'thing_id',
        in: 'path',
        required: true,
        description: 'The id of the thing',
        schema: { type: 'string' },
      },
      {
        name: 'limit',
        in: 'query',
        required: false,
        description: 'How many',
        schema: { type: 'integer', minimum: 1, maximum: 9, default: 5 },
      },
      { name: 'deep', in: 'query', required: false, schema: { type: 'boolean', default: false } },
      { $ref: '#/components/parameters/Idempotency-Key' },
      { $ref: '#/components/parameters/X-Request-Id' },
    ])
    expect(list.parameters).toEqual([{ $ref: '#/components/parameters/X-Request-Id' }])
  })

  test('says what a body takes: before it is trimmed, given its defaults and read, closed, with rows that nobody checks', () => {
    expect(make.requestBody).toEqual({
      required: true,
      content: {
        'application/json': {
          schema: { $ref: '#/components/schemas/MakeThingRequest' },
          example: { name: 'Acme Roofing LLC', on: '2026-07-01', rows: [{ amount: 1 }] },
        },
      },
    })
    expect(document.components.schemas!.MakeThingRequest).toMatchObject({
      type: 'object',
      properties: {
        name: { type: 'string', minLength: 1, maxLength: 20, pattern: '\\S' },
        size: {
          anyOf: [{ type: 'string', enum: ['small', 'large'] }, { type: 'null' }],
          default: 'small',
        },
        note: {
          anyOf: [{ type: 'string', minLength: 1, maxLength: 500, pattern: '\\S' }, { type: 'null' }],
        },
        on: { type: 'string', format: 'date' },
        at: { anyOf: [{ type: 'string', format: 'date-time' }, { type: 'null' }] },
        rows: { type: 'array', minItems: 1, maxItems: 3, items: { $ref: '#/components/schemas/Row' } },
      },
      required: ['name', 'on', 'rows'],
      additionalProperties: false,
    })
    expect(document.components.schemas!.Row).toEqual({
      type: 'object',
      properties: { amount: { type: 'number' } },
      required: ['amount'],
      additionalProperties: {},
    })
  })

  test('says what is answered, in the envelope, open to further fields', () => {
    const thing = { $ref: '#/components/schemas/Thing' }
    expect(bodyOf(make, 201)).toMatchObject({
      type: 'object',
      properties: { ok: { type: 'boolean', const: true }, data: thing },
      required: ['ok', 'data'],
    })
    expect(bodyOf(list, 200)).toMatchObject({
      properties: {
        data: { type: 'array', items: thing },
        pagination: { properties: { next: { type: ['string', 'null'] } } },
      },
    })
    expect(document.components.schemas!.Thing).toMatchObject({
      type: 'object',
      properties: { name: { type: 'string' }, tags: { type: 'array', items: { type: 'string' } } },
      required: ['name', 'tags'],
    })
    expect(Object.keys(make.responses[201]!.headers)).toEqual(['X-Request-Id', 'Idempotent-Replayed'])
    expect(Object.keys(list.responses[200]!.headers)).toEqual(['X-Request-Id'])
  })

  test('says how it is refused: by its own checks, by its credentials, and by what all endpoints share', () => {
    const reasons = Object.entries(make.responses).map(([status, { description }]) => [status, description])
    expect(Object.fromEntries(reasons)).toMatchObject({
      400: expect.any(String),
      401: 'The key is wrong',
      404: 'There is no such thing',
      409: expect.any(String),
      413: expect.any(String),
      415: expect.any(String),
      500: expect.any(String),
      503: expect.any(String),
    })
    expect(Object.keys(list.responses)).toEqual(['200', '400', '401', '500', '503'])
    expect(bodyOf(list, 500)).toEqual({ $ref: '#/components/schemas/InternalServerError' })
    expect(bodyOf(make, 409)).toMatchObject({
      anyOf: [
        { properties: { data: { properties: { taken: { type: 'string' } } } } },
        { $ref: '#/components/schemas/ConflictError' },
      ],
    })
    const codes = (allowed: readonly string[]) => ({
      allOf: [{ $ref: '#/components/schemas/Error' }, { properties: { code: { enum: allowed } } }],
    })
    expect(bodyOf(make, 404)).toEqual(codes(['employer_not_found', 'not_found']))
    expect(document.components.schemas!.InternalServerError).toEqual(codes(['internal_error']))
    expect(Object.keys(make.responses[503]!.headers)).toEqual(['X-Request-Id', 'Retry-After'])
  })

  test('refuses two schemas of one name', () => {
    const other = { ...things[1]!, operation: 'other', answers: { 200: z.object({}).meta({ id: 'Thing' }) } }
    expect(() => openApiOf([...things, other], '1')).toThrow('Thing')
  })
})
