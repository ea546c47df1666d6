import { describe, expect, it } from 'vitest'
import { beginningsOf, isBeginningOf, readSearch } from '../../../application/search/terms.ts'

const personalData = { fingerprint: (purpose: string, value: string) => `${purpose}(${value})` }
const read = (text: string) => readSearch(personalData, text)

describe('what is looked for', () => {
  it.each([
    ['65f0c0ffee0123456789abcd', 'id'],
    ['12-3456789', 'fein'],
    ['123456789', 'fein'],
    ['091000010000001', 'trace'],
    ['service_live_cli_65f0c0ffee0123456789abcd65f0c0ff', 'clientId'],
  ] as const)('%s may be one of these: %s', (text, meant) => {
    const { id, fein, trace, clientId } = read(`  ${text} `)
    const found = Object.entries({ id, fein, trace, clientId }).filter(([, value]) => value !== null)
    expect(found.map(([name]) => name)).toEqual([meant])
  })

  it('is a personal value by its fingerprint alone, however it is written', () => {
    expect(read(' Office@Tidewater.EXAMPLE ').terms).toEqual([
      'Office@Tidewater.EXAMPLE',
      '#search_email(office@tidewater.example)',
      '#search_legal_name(office@tidewater.example)',
      '#search_idempotency_key(Office@Tidewater.EXAMPLE)',
    ])
  })

  it.each(['%', '_', '\\', "'; drop table employers --", '*'])('%s stands for itself', (text) => {
    expect(read(text)).toMatchObject({ name: text, id: null, fein: null, trace: null })
    expect(isBeginningOf(read(text).name, 'Sierra Ridge Builders LLC')).toBe(false)
    expect(isBeginningOf(read(text).name, `100${text} Cotton`)).toBe(text === '100')
  })
})

describe('a name', () => {
  it('is found from each of its words on, whatever the case and white space', () => {
    expect(beginningsOf(' Sierra  Ridge Builders ')).toEqual([
      'sierra ridge builders',
      'ridge builders',
      'builders',
    ])
    expect(isBeginningOf(read('RIDGE  bui').name, 'Sierra Ridge Builders')).toBe(true)
    expect(isBeginningOf(read('idge').name, 'Sierra Ridge Builders')).toBe(false)
  })

  it('takes little room, however long it is', () => {
    const all = beginningsOf('ab '.repeat(10_000))
    expect(all.length).toBeLessThanOrEqual(12)
    expect(Math.max(...all.map(({ length }) => length))).toBeLessThanOrEqual(200)
  })
})
