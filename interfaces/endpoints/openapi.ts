import { STATUS_CODES } from 'node:http'
import { z } from 'zod'
import type { ErrorCode } from '../http/errors.ts'
import type { Api } from './api.ts'
import type { Endpoint, Refuses } from './endpoint.ts'
import { exampleOf } from './examples.ts'
import { check } from './faults.ts'
import { missingCode } from './not-found.ts'
import { type JsonSchema, Schemas } from './schemas.ts'
import { TAG_TEXTS } from './tag-texts.ts'

/** Endpoints of one API, whatever their handlers are given. */
export type Endpoints = readonly Endpoint<never>[]

/** An OpenAPI 3.1 document. */
export interface OpenApi {
  readonly openapi: '3.1.1'
  readonly info: Info
  readonly servers: readonly { readonly url: string; readonly description: string }[]
  readonly tags: readonly { readonly name: string; readonly description?: string }[]
  /** Operations by path and method in lower case. */
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  /** What the service sends to addresses that callers register. */
  readonly webhooks?: Readonly<Record<string, JsonSchema>>
  readonly components: Readonly<Record<string, Readonly<Record<string, JsonSchema>>>>
}

/** What a document says of itself. */
export interface Info {
  readonly title: string
  readonly version: string
  readonly description: string
  readonly contact: { readonly name: string }
  readonly license: { readonly name: string; readonly identifier: string }
}

/** Whom to ask, and what may be done with a document: as the package says. */
export const PUBLISHED = {
  contact: { name: 'The operator of the installation' },
  license: { name: 'Proprietary', identifier: 'LicenseRef-UNLICENSED' },
} as const satisfies Partial<Info>

export interface Operation {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly summary: string
  readonly description: string
  readonly security: readonly Readonly<Record<string, readonly string[]>>[]
  readonly parameters: readonly (Parameter | Reference)[]
  readonly requestBody?: { readonly required: boolean; readonly content: Content }
  /** By status. */
  readonly responses: Readonly<Record<string, Response>>
}

export interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required: boolean
  readonly description?: string
  readonly schema: JsonSchema
}

interface Reference {
  readonly $ref: string
}

/** By media type. */
type Content = Readonly<Record<string, { readonly schema: JsonSchema; readonly example?: unknown }>>

interface Response {
  readonly description: string
  readonly headers: Readonly<Record<string, Reference>>
  readonly content: Content
}

/** When an endpoint is refused by what all of them have in common. */
const COMMON_ERRORS = {
  400: 'The request does not have the form that is described here',
  409: 'The `Idempotency-Key` was used for another body',
  413: 'The body is too large',
  415: 'The body is compressed, or not in UTF-8',
  500: 'The service failed; the request may or may not have had its effect',
  503: 'A part of the service is away for a moment',
} as const

const HEADERS = {
  'X-Request-Id': {
    description: 'The id of the request, and the correlation id of the events it caused',
    required: true,
    schema: { type: 'string' },
  },
  'Idempotent-Replayed': {
    description: '`true` when this is the answer to an earlier request with the same `Idempotency-Key`',
    schema: { type: 'string', const: 'true' },
  },
  'RateLimit-Policy': {
    description:
      'How many requests fit into a full bucket (`q`), and the seconds that fill it (`w`); none: no limit',
    schema: { type: 'string' },
  },
  RateLimit: {
    description: 'Requests that are left (`r`), and the seconds after which all are there again (`t`)',
    schema: { type: 'string' },
  },
  'Retry-After': {
    description: 'Seconds after which the request may be sent again',
    schema: { type: 'integer', minimum: 1 },
  },
} as const

const PARAMETERS = {
  'Idempotency-Key': {
    name: 'Idempotency-Key',
    in: 'header',
    required: false,
    description: 'Any unique text: a request that is sent again with the same key has its effect once',
    schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~]+$' },
  },
  'X-Request-Id': {
    name: 'X-Request-Id',
    in: 'header',
    required: false,
    description: 'An id for this request, 1 to 128 visible ASCII characters; else it gets one',
    schema: { type: 'string' },
  },
} as const satisfies Readonly<Record<string, Parameter>>

/**
 * Describes the endpoints of one API, under each of its prefixes.
 * @param publicUrl base address under which callers reach the host; null: where the description was read.
 * @throws Error for endpoints that cannot be described.
 */
export function openApiOf(endpoints: Endpoints, version: string, publicUrl: string | null = null): OpenApi {
  const steps = describing(endpoints, version, publicUrl)
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}

/** {@link openApiOf}, which others may interrupt after each operation. */
export function* describing(
  endpoints: Endpoints,
  version: string,
  publicUrl: string | null,
): Generator<void, OpenApi, void> {
  const { api } = endpoints[0]!
  const schemas = new Schemas()
  const paths: Record<string, Record<string, Operation>> = {}
  const names = new Set<string>()
  for (const prefix of new Set(endpoints.flatMap(({ api }) => api.prefixes))) {
    for (const endpoint of endpoints.filter(({ api }) => api.prefixes.includes(prefix))) {
      const operation = operationOf(endpoint, prefix, schemas)
      if (names.has(operation.operationId)) throw new Error(`Two operations are ${operation.operationId}`)
      names.add(operation.operationId)
      paths[`${prefix}${endpoint.path}`] = {
        ...paths[`${prefix}${endpoint.path}`],
        [endpoint.method.toLowerCase()]: operation,
      }
      yield
    }
  }
  const tags = new Set(
    Object.values(paths).flatMap((path) => Object.values(path).flatMap(({ tags }) => tags)),
  )
  return {
    openapi: '3.1.1',
    info: {
      title: api.title,
      version,
      description: `${api.description}\n\n${credentialsOf(api)}`,
      ...PUBLISHED,
    },
    servers: [
      { url: publicUrl ?? '/', description: publicUrl ? 'The public address' : 'Where this was read' },
    ],
    tags: [...tags].map((name) => ({ name, ...(TAG_TEXTS[name] && { description: TAG_TEXTS[name] }) })),
    paths,
    ...(api.webhooks && { webhooks: api.webhooks(schemas) }),
    components: {
      // the components are complete once the schema of errors is made
      schemas: { Error: schemas.of(api.errorBody, 'output'), ...schemas.components },
      securitySchemes: api.securitySchemes as Readonly<Record<string, JsonSchema>>,
      parameters: PARAMETERS,
      headers: Object.fromEntries(
        Object.entries(HEADERS).filter(
          ([name]) => !LIMITS.includes(name) || endpoints.some(({ access }) => isLimited(access)),
        ),
      ),
    },
  }
}

/** The credentials that a caller sends, as a list in Markdown. */
function credentialsOf({ securitySchemes }: Api): string {
  return Object.values(securitySchemes as Readonly<Record<string, Readonly<Record<string, string>>>>)
    .map(({ type, name, description }) =>
      type === 'http' ? `- \`Authorization: Bearer\`: ${description}` : `- \`${name}\`: ${description}`,
    )
    .join('\n')
}

/** An endpoint under one of its prefixes; under others than the first its name ends in theirs, `reportPayrollV2`. */
function operationOf(endpoint: Endpoint<never>, prefix: string, schemas: Schemas): Operation {
  const { api, operation, summary, description, access, params, query, body, line, path, idempotent } =
    endpoint
  const isFirst = prefix === api.prefixes[0]
  const sent = body && schemas.named(`${nameOf(operation)}Request`, body, 'input')
  const suffix = prefix.split('/').at(-1)!
  const texts = [
    ...(isFirst ? [] : [`The same as \`${endpoint.method} ${api.prefixes[0]}${path}\`.`]),
    ...(description === undefined ? [] : [description]),
    ...(idempotent === undefined ? [] : [`**Idempotency-Key**: ${idempotent}.`]),
  ]
  return {
    operationId: isFirst ? operation : `${operation}${suffix.charAt(0).toUpperCase()}${suffix.slice(1)}`,
    tags: [isFirst ? path.split('/')[1]! : prefix],
    summary,
    description: texts.length > 0 ? texts.join('\n\n') : `${summary}.`,
    security: access.security,
    parameters: [
      ...parametersOf(params, 'path', schemas),
      ...parametersOf(query, 'query', schemas),
      ...(idempotent === undefined ? [] : [referenceTo('parameters', 'Idempotency-Key')]),
      referenceTo('parameters', 'X-Request-Id'),
    ],
    ...(line && { requestBody: { required: false, content: linesOf(line, schemas) } }),
    ...(body &&
      sent && {
        requestBody: {
          required: !api.takesEmptyBodies || 'faults' in check(body, {}),
          content: {
            'application/json': {
              schema: sent,
              example: endpoint.example ?? exampleOf(sent, schemas.components),
            },
          },
        },
      }),
    responses: { ...answersOf(endpoint, schemas), ...refusalsOf(endpoint, schemas) },
  }
}

function parametersOf(
  schema: z.ZodObject | undefined,
  where: 'path' | 'query',
  schemas: Schemas,
): readonly Parameter[] {
  if (!schema) return []
  const { properties = {}, required = [] } = schemas.of(schema, 'input') as {
    properties?: Readonly<Record<string, JsonSchema>>
    required?: readonly string[]
  }
  return Object.entries(properties).map(([name, { description, ...rest }]) => ({
    name,
    in: where,
    required: required.includes(name),
    ...(typeof description === 'string' && { description }),
    schema: rest,
  }))
}

function answersOf(endpoint: Endpoint<never>, schemas: Schemas): Readonly<Record<string, Response>> {
  const { answers, idempotent, produces, access } = endpoint
  const successes = Object.entries(answers).filter(([status]) => Number(status) < 400)
  return Object.fromEntries(
    successes.map(([status, schema]) => [
      status,
      {
        description: STATUS_CODES[status]!,
        headers: headersOf([
          ...['X-Request-Id', ...(isLimited(access) ? LIMITS : [])],
          ...(idempotent === undefined ? [] : ['Idempotent-Replayed']),
        ]),
        content:
          produces === undefined
            ? json(schemas.named(answerNameOf(endpoint, schema), bodyOf(endpoint, schema), 'output'))
            : { [produces]: { schema: schemas.of(schema, 'output') } },
      },
    ]),
  )
}

/** What an operation is about: `createPaymentLink` makes a `PaymentLink`. */
function nameOf(operation: string): string {
  return capital(operation.replace(/^(create|register)(?=[A-Z])/, ''))
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1)
}

/** The name of an answer with its envelope: that of the data, or else of the operation. */
function answerNameOf({ operation, alsoBare, pagination }: Endpoint<never>, data: z.ZodType): string {
  const list = data instanceof z.ZodReadonly ? data.unwrap() : data
  const isList = list instanceof z.ZodArray
  const { id } = z.globalRegistry.get((isList ? list.element : list) as z.ZodType) ?? {}
  const isShared = pagination === undefined || z.globalRegistry.get(pagination)?.id !== undefined
  const isWhole = isList && pagination === undefined
  if (id === undefined || alsoBare || !isShared || isWhole) return `${capital(operation)}Response`
  return isList ? `${id}ListResponse` : `${id}Response`
}

/** The whole body of an answer. */
function bodyOf({ api, pagination, alsoBare }: Endpoint<never>, data: z.ZodType): z.ZodType {
  const body = api.envelope.schema(data, pagination)
  return alsoBare ? (body as z.ZodObject).extend((data as z.ZodObject).shape) : body
}

/** Refusals by status: of the pipeline, of the caller's credentials, and the endpoint's own. */
function refusalsOf(endpoint: Endpoint<never>, schemas: Schemas): Readonly<Record<string, Response>> {
  const { api, access, answers, method, line, idempotent } = endpoint
  const takesBytes = !line && (method !== 'GET' || access.signsBytes !== undefined)
  const { 400: form, 409: otherBody, 413: tooLarge, 415: encoding, ...failures } = COMMON_ERRORS
  const declared = Object.keys(answers).filter((status) => Number(status) >= 400)
  const reasons: Record<string, string> = {
    ...Object.fromEntries(declared.map((status) => [status, STATUS_CODES[status]!])),
    400: form,
    ...(idempotent !== undefined && { 409: otherBody }),
    ...(takesBytes && { 413: tooLarge, 415: encoding }),
    ...(line && { 415: encoding }),
    ...failures,
    ...api.errors,
    ...access.errors,
    ...endpoint.errors,
  }
  if (endpoint.asksOutside && reasons[502]) {
    reasons[409] = [reasons[409], 'A provider refused it for good'].filter(Boolean).join('; ')
  }
  return Object.fromEntries(
    Object.entries(reasons).map(([status, reason]) => {
      const own = answers[Number(status)]
      const refusal = refusalSchema(endpoint, Number(status), schemas)
      const schema = own
        ? { anyOf: [schemas.of(api.envelope.schema(own, undefined), 'output'), refusal] }
        : refusal
      const waits = status === '429' || status === '503'
      return [
        status,
        {
          description: reason,
          headers: headersOf([
            ...['X-Request-Id', ...(status === '429' && isLimited(access) ? LIMITS : [])],
            ...(waits ? ['Retry-After'] : []),
          ]),
          content: json({ ...schema }),
        },
      ]
    }),
  )
}

/** Codes that any operation can be refused with, by status. */
const COMMON_CODES: Refuses = {
  400: [
    ...(['field_invalid', 'field_missing', 'field_too_large', 'field_too_small', 'field_unknown'] as const),
    ...(['invalid_json', 'invalid_request'] as const),
  ],
  401: ['credentials_missing', 'invalid_signature', 'timestamp_outside_tolerance', 'unauthorized'],
  403: ['forbidden', 'wrong_environment'],
  404: ['not_found'],
  409: ['conflict', 'idempotency_key_reused', 'idempotency_key_used', 'provider_refused'],
  413: ['field_too_large', 'payload_too_large'],
  415: ['unsupported_media_type'],
  429: ['rate_limited'],
  500: ['internal_error'],
  502: ['bad_gateway'],
  503: ['unavailable'],
  504: ['timeout'],
}

/** The body of a refusal with the codes that it can name: `ConflictError`, or what an operation adds to it. */
function refusalSchema({ params, refuses }: Endpoint<never>, status: number, schemas: Schemas): JsonSchema {
  const common = COMMON_CODES[status] ?? []
  const inPath = status === 404 && params ? Object.keys(params.shape) : []
  const missing = inPath.map((name) => missingCode(params!, name))
  const own = [...new Set([...missing, ...(refuses?.[status] ?? [])])].filter(
    (code) => !common.includes(code),
  )
  const withCodes = (codes: readonly ErrorCode[]) => ({
    allOf: [referenceTo('schemas', 'Error'), { properties: { code: { enum: codes } } }],
  })
  return own.length > 0
    ? withCodes([...own, ...common])
    : schemas.component(`${STATUS_CODES[status]!.replaceAll(/\W|Error$/g, '')}Error`, withCodes(common))
}

const LIMITS = ['RateLimit-Policy', 'RateLimit']

/** Whether requests of one credential are counted: their answers say where it stands. */
function isLimited({ errors, security }: Endpoint<never>['access']): boolean {
  // operators are counted by address alone, and only without a token
  return errors[429] !== undefined && !security.some((one) => 'operator' in one)
}

function headersOf(names: readonly string[]): Readonly<Record<string, Reference>> {
  return Object.fromEntries(names.map((name) => [name, referenceTo('headers', name)]))
}

function referenceTo(kind: 'schemas' | 'parameters' | 'headers', name: string): Reference {
  return { $ref: `#/components/${kind}/${name}` }
}

/** Objects one after another, each on a line of its own. */
function linesOf(line: z.ZodType, schemas: Schemas): Content {
  return { 'application/x-ndjson': { schema: schemas.of(line, 'input') } }
}

function json(schema: JsonSchema): Content {
  return { 'application/json': { schema } }
}
