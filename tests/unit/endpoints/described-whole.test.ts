import { createRequire } from 'node:module'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { describe, expect, test } from 'vitest'
import { descriptions, eventDescription } from '../../../interfaces/descriptions.ts'
import { FIELD_TEXTS } from '../../../interfaces/endpoints/field-texts.ts'
import { type OpenApi, openApiOf } from '../../../interfaces/endpoints/openapi.ts'
import { TAG_TEXTS } from '../../../interfaces/endpoints/tag-texts.ts'
import { agentCredentialEndpoints } from '../../../interfaces/mcp/access/agent-credentials.ts'
import { jsonSchemaOf } from '../../../interfaces/mcp/arguments.ts'
import { tools } from '../../../interfaces/mcp/tools.ts'

// CommonJS whose named exports Node does not find
const require = createRequire(import.meta.url)
const { Document, Spectral } =
  require('@stoplight/spectral-core') as typeof import('@stoplight/spectral-core')
const { Json } = require('@stoplight/spectral-parsers') as typeof import('@stoplight/spectral-parsers')
const { asyncapi, oas } =
  require('@stoplight/spectral-rulesets') as typeof import('@stoplight/spectral-rulesets')

const apis = { ...descriptions(), agents: openApiOf(agentCredentialEndpoints, '1.0.0') }
const documents = Object.entries({ ...apis, events: eventDescription() })

describe.each(Object.entries(apis))('the description of the %s API', (_name, document) => {
  test('explains every field, parameter and group', () => {
    expect([...unexplained(document)]).toEqual([])
  })

  test('names every body', () => {
    const bodies = operationsOf(document).flatMap(({ operationId, requestBody, responses }) =>
      [requestBody, ...Object.values(responses)]
        .map((one) => one?.content['application/json']?.schema)
        .filter((schema) => schema && !['$ref', 'anyOf', 'allOf'].some((word) => word in schema))
        .map(() => operationId),
    )
    expect(bodies).toEqual([])
  })
})

test('no text that is served leads to a file of the project', () => {
  const shown = tools.map(({ description, input }) => [description, jsonSchemaOf(input)])
  const texts = JSON.stringify([documents, shown])
  expect(texts.match(/\]\((?!https:|\?)[^)]*\)|[\w/-]+\.md\b/g)).toBeNull()
})

test('no text says what null means of a field that is never null', () => {
  expect(documents.flatMap(([name, document]) => [...saidOfNull(document, name)])).toEqual([])
})

test('every text of a field or a group is used', () => {
  const all = JSON.stringify(apis)
  const unused = [...Object.values(FIELD_TEXTS), ...Object.values(TAG_TEXTS)].filter(
    (text) => !all.includes(JSON.stringify(text)),
  )
  expect(unused).toEqual([])
})

test.each(Object.entries(apis))('Redocly finds nothing wrong with %s', async (name, document) => {
  const config = await createConfig({
    extends: ['recommended'],
    rules: {
      // `/bank-accounts/ach/{id}` and `/bank-accounts/{id}/default` are documented so: no id of 24 hex characters is `ach`
      'no-ambiguous-paths': 'off',
    },
  })
  const source = JSON.stringify(document)
  const problems = await lintFromString({ source, absoluteRef: `/${name}.json`, config })
  expect(problems.map(({ ruleId, message }) => `${ruleId}: ${message}`)).toEqual([])
})

test.each(documents)('Spectral finds nothing wrong with %s', async (name, document) => {
  const spectral = new Spectral()
  spectral.setRuleset({
    extends: [name === 'events' ? asyncapi : oas] as never,
    rules:
      name === 'events'
        ? // webhooks go to addresses that partners name, NATS is where the operator has it, and who operates it is not known
          { 'asyncapi-servers': 'off', 'asyncapi-info-contact-properties': 'off' }
        : // it knows `items` alone, where JSON Schema 2020-12 has `prefixItems`
          { 'array-items': 'off' },
  })
  const found = await spectral.run(new Document(JSON.stringify(document), Json as never, `${name}.json`))
  expect(found.map(({ code, message, path }) => `${code}: ${message} at ${path.join('/')}`)).toEqual([])
})

function operationsOf({ paths }: OpenApi) {
  return Object.values(paths).flatMap((methods) => Object.values(methods))
}

/** Fields that are never null, and whose texts say what null means. */
function* saidOfNull(value: unknown, at: string): Generator<string> {
  if (typeof value !== 'object' || value === null) return
  const { type, description } = value as { type?: unknown; description?: unknown }
  if (typeof type === 'string' && type !== 'null' && /; null: /.test(String(description))) yield at
  for (const [key, one] of Object.entries(value)) yield* saidOfNull(one, `${at}/${key}`)
}

/** What a reader would have to guess: JSON pointers. */
function* unexplained(document: OpenApi): Generator<string> {
  for (const { name, description } of document.tags) if (!description) yield `tag ${name}`
  for (const { operationId, parameters } of operationsOf(document)) {
    for (const one of parameters) if ('name' in one && !one.description) yield `${operationId} ${one.name}`
  }
  yield* fieldsIn(document.components.schemas!, '')
  yield* fieldsIn(document.paths, '')
  yield* fieldsIn(document.webhooks, '')
}

function* fieldsIn(value: unknown, at: string): Generator<string> {
  if (typeof value !== 'object' || value === null) return
  const { type, properties } = value as {
    type?: unknown
    properties?: Record<string, { description?: string }>
  }
  if (type === 'object') {
    for (const [name, field] of Object.entries(properties ?? {}))
      if (!field.description) yield `${at}.${name}`
  }
  for (const [key, one] of Object.entries(value)) yield* fieldsIn(one, `${at}/${key}`)
}
