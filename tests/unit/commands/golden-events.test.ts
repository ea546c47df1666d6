import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { EventRegistry } from '../../../application/commands/event-registry.ts'
import { aggregates } from '../../../domain/catalogue.ts'
import { oneALine } from '../../support/golden.ts'
import { sampleFitting } from '../../support/schema-values.ts'

/**
 * One stored sample of every version of every event type that was ever released. They must be readable for ever, so
 * a sample is never changed or removed. `GOLDEN=add npx vitest run tests/unit/commands/golden-events.test.ts` writes the
 * missing ones; look at them before committing, and make them more telling by hand where that helps.
 */
const FILE = join(import.meta.dirname, '../..', 'golden', 'events.json')

interface Sample {
  readonly type: string
  readonly version: number
  readonly data: unknown
}
interface Golden {
  /** Metadata as it stands in the log; `schema_version` is that of each sample. */
  readonly metadata: Readonly<Record<string, unknown>>
  readonly samples: readonly Sample[]
}

const registry = new EventRegistry(aggregates)

function read(): Golden {
  return JSON.parse(readFileSync(FILE, 'utf8')) as Golden
}

function missing({ samples }: Golden): Sample[] {
  return registry.types
    .filter(
      ({ name, version }) => !samples.some((sample) => sample.type === name && sample.version === version),
    )
    .map(({ name, version, schema }) => ({ type: name, version, data: sampleFitting(schema, name) }))
}

if (process.env.GOLDEN === 'add') {
  const golden = read()
  const samples = oneALine([...golden.samples, ...missing(golden)])
  writeFileSync(FILE, `{"metadata":${JSON.stringify(golden.metadata)},\n"samples":${samples}}\n`)
}

const golden = read()

function decode({ type, version, data }: Sample) {
  return registry.decode({
    position: 1n,
    stream: 'golden-1',
    revision: 0,
    eventId: '00000000-0000-8000-8000-000000000000',
    type,
    data: JSON.stringify(data),
    metadata: JSON.stringify({ ...golden.metadata, schema_version: version }),
  })
}

test('every event type has a sample of its current version (GOLDEN=add writes missing ones)', () => {
  expect(missing(golden).map(({ type, version }) => `${type} version ${version}`)).toEqual([])
})

test('no sample stands twice', () => {
  const keys = golden.samples.map(({ type, version }) => `${type} version ${version}`)
  expect(new Set(keys).size).toBe(keys.length)
})

test.each(golden.samples.map((sample) => [sample.type, sample.version, sample] as const))(
  '%s version %i reads, and nothing of it is lost',
  (type, version, sample) => {
    const { data, metadata } = decode(sample)
    const isCurrent = registry.types.some((known) => known.name === type && known.version === version)
    if (isCurrent) expect(data).toEqual(sample.data)
    expect(metadata).toEqual({ ...golden.metadata, schema_version: version })
  },
)

test.each([
  ['an unknown type', { type: 'NeverReleased', version: 1, data: {} }],
  ['data that does not fit', { type: 'TenantRegistered', version: 1, data: { tenant_id: 'x' } }],
  ['a version of the future', { type: 'TenantRegistered', version: 99, data: {} }],
])('a sample of %s would not pass', (_, sample) => {
  expect(() => decode(sample)).toThrow(/cannot be read/)
})
