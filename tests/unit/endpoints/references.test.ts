import { expect, test } from 'vitest'
import { descriptions } from '../../../interfaces/descriptions.ts'

type Json = ReturnType<typeof JSON.parse>

/** Ids of what the service has. Those of providers, and what is a partner's own word, are looked up by other rules. */
const OURS = /^(employer|policy|carrier|bank_account|owner)_id$|^(employer|bankAccount|policy)Id$/

const document: Json = JSON.parse(JSON.stringify(descriptions().payments))

/** The schemas of fields that name something of ours, wherever in a request they stand. */
function* referencesIn(schema: Json, at: string): Generator<readonly [string, Json]> {
  const { $ref, properties = {}, items, anyOf = [], allOf = [], oneOf = [] } = schema
  if ($ref) yield* referencesIn(document.components.schemas[$ref.split('/').at(-1)], at)
  if (items) yield* referencesIn(items, `${at}[]`)
  for (const one of [...anyOf, ...allOf, ...oneOf]) yield* referencesIn(one, at)
  for (const [name, field] of Object.entries(properties)) {
    if (OURS.test(name)) yield [`${at} ${name}`, field]
    else yield* referencesIn(field, at)
  }
}

function textOf({ type, anyOf, ...schema }: Json): Json {
  return anyOf ? textOf(anyOf.find((one: Json) => one.type !== 'null')) : schema
}

test('text that cannot be an id is no wrong field of a request of partners: it names nothing, like an unknown id', () => {
  const found = Object.values<Json>(document.paths)
    .flatMap((path) => Object.values<Json>(path))
    .flatMap(({ operationId, parameters = [], requestBody }) => [
      ...parameters
        .filter((one: Json) => one.in === 'query' && OURS.test(one.name))
        .map((one: Json) => [`${operationId} ${one.name}`, one.schema] as const),
      ...referencesIn(requestBody?.content['application/json'].schema ?? {}, operationId),
    ])
  expect(found.length).toBeGreaterThan(30)
  const refusing = found.filter(([, schema]) => {
    const { pattern, maxLength } = textOf(schema)
    return maxLength !== undefined || (pattern !== undefined && !new RegExp(pattern).test('zzz'))
  })
  expect(refusing.map(([at]) => at)).toEqual([])
})
