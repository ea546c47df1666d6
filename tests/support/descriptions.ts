import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { inject } from 'vitest'
import { TOLERANT } from '../../interfaces/endpoints/fields.ts'
import type { OpenApi, Operation } from '../../interfaces/endpoints/openapi.ts'
import { apiAt, type DescribedApi } from './described-hosts.ts'

/**
 * What services answer is held against the description of their APIs: what all tests call them with
 * ({@link ./seed.ts}) checks every answer.
 */

declare module 'vitest' {
  export interface ProvidedContext {
    /** Documents by API. */
    descriptions: Readonly<Record<DescribedApi, OpenApi>>
  }
}

/** The document of an API, as its host serves it. */
export function descriptionOf(api: DescribedApi): OpenApi {
  return inject('descriptions')[api]
}

/** An answer, as far as a description says something about it. */
interface DescribedAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** Where the paths of operations are; others are for probes and readers. */
const BASES: Readonly<Record<DescribedApi, string>> = { core: '/api/', operator: '/ops/', payments: '/api/' }

/** Statuses of hosts for what is no operation: unknown paths and methods, unreadable paths, foreign names, too much. */
const WITHOUT_OPERATION = [400, 403, 404, 405, 429]

/**
 * Holds an answer against the description of the host that gave it; those of other hosts pass.
 * @throws Error for a status, header or field that is not described, and for one that is and was not sent.
 */
export function expectDescribed(method: string, url: string, answer: DescribedAnswer): void {
  const { origin, pathname } = new URL(url)
  const api = apiAt(origin)
  if (api === null || method === 'HEAD' || method === 'OPTIONS') return
  const fault = faultOf(api, method, pathname, answer)
  if (fault === null) return
  throw new Error(`${method} ${pathname} answers ${answer.status}, ${fault}: ${answer.text.slice(0, 2000)}`)
}

function faultOf(api: DescribedApi, method: string, path: string, answer: DescribedAnswer): string | null {
  const { status, headers, text } = answer
  const found = operationOf(api, method, path)
  if (found === null) {
    if (!path.startsWith(BASES[api])) return null
    return WITHOUT_OPERATION.includes(status) ? null : 'which is said of what is no operation'
  }
  const { operation, pointer } = found
  const response = operation.responses[status]
  if (!response) return `which ${operation.operationId} does not describe`
  if (!headers.has('x-request-id')) return 'without X-Request-Id'
  if (headers.has('idempotent-replayed') && !('Idempotent-Replayed' in response.headers)) {
    return 'with Idempotent-Replayed, which is not described'
  }
  const produced = Object.keys(response.content)[0]!
  if (!headers.get('content-type')?.startsWith(produced)) return `and not as ${produced}`
  if (produced !== 'application/json') return null
  const validate = validatorOf(
    `${api} closed`,
    `${pointer}/responses/${status}/content/application~1json/schema`,
  )
  return validate(JSON.parse(text)) ? null : `not as described (${faultsIn(validate)})`
}

/** The operation of a request, and where the document has it. */
function operationOf(
  api: DescribedApi,
  method: string,
  path: string,
): { readonly operation: Operation; readonly pointer: string } | null {
  const parts = path.replace(/(?<=.)\/$/, '').split('/')
  const fitting = Object.entries(descriptionOf(api).paths)
    .filter(([template]) => fits(template.split('/'), parts))
    .sort(([one], [other]) => parametersIn(one) - parametersIn(other))
  for (const [template, { [method.toLowerCase()]: operation }] of fitting) {
    if (operation) return { operation, pointer: `/paths/${escaped(template)}/${method.toLowerCase()}` }
  }
  return null
}

function fits(template: readonly string[], parts: readonly string[]): boolean {
  return (
    template.length === parts.length &&
    template.every((part, index) => (part.startsWith('{') ? parts[index] !== '' : part === parts[index]))
  )
}

function parametersIn(template: string): number {
  return template.split('{').length
}

function escaped(part: string): string {
  return part.replaceAll('~', '~0').replaceAll('/', '~1')
}

const ajv = formats.default(new Ajv2020({ strict: false, allErrors: true, validateSchema: false }))

/**
 * Checks values by a schema of a document.
 * @param document an API's, for what is sent; `closed`: with no field in any object that is not described, for answers.
 * @param pointer JSON pointer of the schema.
 */
export function validatorOf(
  document: DescribedApi | `${DescribedApi} closed`,
  pointer: string,
): ValidateFunction {
  const [api, isClosed] = document.split(' ') as [DescribedApi, 'closed'?]
  const id = isClosed ? `${api}-closed` : api
  if (!added.has(id)) {
    ajv.addSchema(isClosed ? closed(descriptionOf(api)) : tolerant(descriptionOf(api)), id)
    added.add(id)
  }
  const at = pointer.split('/').map(encodeURIComponent).join('/')
  return ajv.getSchema(`${id}#${at}`)!
}
const added = new Set<string>()

/** What the last check found, in one line. */
export function faultsIn({ errors }: ValidateFunction): string {
  return ajv.errorsText(errors, { dataVar: '' })
}

/** The document with every object closed: callers must expect new fields of answers, tests tell of undescribed ones. */
function closed(document: OpenApi): object {
  return JSON.parse(JSON.stringify(document), (_key, value) => {
    const isObject = value?.type === 'object' && value.properties && !('additionalProperties' in value)
    return isObject ? { ...value, additionalProperties: false } : value
  })
}

/** The document without what it only advises: values in rows that are taken whatever they are. */
function tolerant(document: OpenApi): object {
  return JSON.parse(JSON.stringify(document), (_key, value) =>
    value?.[TOLERANT] ? { type: 'object' } : value,
  )
}
