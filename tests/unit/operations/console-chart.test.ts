import { expect, test } from 'vitest'
import { chart } from '../../../interfaces/operator-api/console/chart.ts'
import { html } from '../../../interfaces/portal/html.ts'

/** The line of a chart as a path of SVG, and what its description says. */
function drawn(values: readonly (number | null)[]) {
  const { text } = chart({
    id: 'one',
    title: 'Lag',
    unit: 's',
    values,
    from: html`10:00`,
    to: html`11:00`,
  })
  return [/class="line" d="([^"]*)"/.exec(text)?.[1], /<desc[^>]*>([^<]*)</.exec(text)?.[1]]
}

test('a line of a chart is as high as its greatest value, and has gaps where nothing is known', () => {
  expect(drawn([0, 5, null, 10, 2.5])).toEqual([
    'M0 100h0L150 50M450 0h0L600 75',
    'At most 10 s, last 2.5 s.',
  ])
  expect(drawn([0, 0])).toEqual(['M0 100h0L600 100', 'At most 0 s, last 0 s.'])
  expect(drawn([null, 1_234.56, null])).toEqual(['M300 0h0', 'At most 1235 s, last 1235 s.'])
  expect(drawn([1, null, null])[1]).toBe('At most 1 s, not measured at present.')
  expect(drawn([null, null])).toEqual(['', 'Not measured yet.'])
})
