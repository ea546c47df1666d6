import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { aggregates } from '../../domain/catalogue.ts'

/** What auditors read of the log must name everything that stands in it. */
const [streams, versions] = await readFile('docs/event-log.md', 'utf8').then((page) => {
  const start = page.indexOf('## Streams')
  const table = page.indexOf('| Category |', start)
  return [page.slice(table, page.indexOf('\n\n', table)), page.slice(start, table)]
})

test.each(aggregates.map(({ category, events }) => [category, events.map(({ name }) => name)]))(
  'the page of the event log names %s and its events',
  (category, names) => {
    const missing = [category, ...names].filter((name) => !streams!.includes(`\`${name}\``))
    expect(missing).toEqual([])
  },
)

test('it names the types that are beyond version 1', () => {
  const later = aggregates.flatMap(({ events }) => events.filter(({ version }) => version > 1))
  expect(later.map(({ name }) => name).filter((name) => !versions!.includes(`\`${name}\``))).toEqual([])
})
