import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { contrastOf, palette, READABLE } from '../../../../interfaces/portal/accent.ts'
import { accentStyle, STYLE } from '../../../../interfaces/portal/style.ts'
import { runs } from '../../../support/generated.ts'

const colour = fc.integer({ min: 0, max: 0xffffff }).map((value) => `#${value.toString(16).padStart(6, '0')}`)
/** What text may stand on, by scheme: `--page` and `--card` of the style. */
const SURFACES = { light: ['#eef1f6', '#ffffff'], dark: ['#12151b', '#1a1e26', '#20242d'] } as const

describe('the colours of a page', () => {
  test('are readable, whatever accent colour was chosen', () => {
    fc.assert(
      fc.property(colour, fc.constantFrom('light', 'dark'), (accent, scheme) => {
        const { accent: button, onAccent, accentText } = palette(accent, scheme)
        expect(contrastOf(button, onAccent)).toBeGreaterThanOrEqual(READABLE)
        for (const surface of SURFACES[scheme]) {
          expect(contrastOf(accentText, surface)).toBeGreaterThanOrEqual(READABLE)
        }
      }),
      runs(),
    )
  })

  test('are the chosen ones where these are readable', () => {
    expect(palette('#0b7a75', 'light')).toEqual({
      accent: '#0b7a75',
      onAccent: '#ffffff',
      accentText: '#0b7a75',
    })
    expect(palette('#ffff00', 'dark')).toMatchObject({ accent: '#ffff00', onAccent: '#000000' })
  })

  test.each(['', 'red', '#fff', '#12345g', '#000000;}body{display:none}'])(
    'are the service’s own for %j',
    (accent) => expect(palette(accent, 'light')).toEqual(palette('#1f5fd6', 'light')),
  )

  test('of text on its surfaces are readable', () => {
    const [light, dark] = STYLE.split('prefers-color-scheme:dark').map((part) =>
      Object.fromEntries(
        [...part.matchAll(/--([\w-]+):(#[0-9a-f]{3,6})\b/g)].map(([, name, of]) => [name, long(of!)]),
      ),
    )
    for (const colours of [light!, { ...light!, ...dark! }]) {
      for (const surface of ['page', 'card'] as const) {
        for (const ink of ['ink', 'soft', 'bad'] as const) {
          expect([ink, surface, contrastOf(colours[ink]!, colours[surface]!) >= READABLE]).toEqual([
            ink,
            surface,
            true,
          ])
        }
        // what bounds a field
        expect(contrastOf(colours.edge!, colours[surface]!)).toBeGreaterThanOrEqual(3)
      }
      for (const tone of ['good', 'bad', 'warn', 'calm']) {
        expect(contrastOf(colours[tone]!, colours[`${tone}-bg`]!)).toBeGreaterThanOrEqual(READABLE)
      }
    }
    expect(accentStyle(palette('', 'light'), palette('', 'dark'))).toContain('--accent:#1f5fd6')
  })
})

function long(colour: string): string {
  return colour.length === 4 ? `#${[...colour.slice(1)].map((one) => one + one).join('')}` : colour
}
