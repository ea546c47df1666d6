import { describe, expect, test } from 'vitest'
import { RULES } from '../../scripts/language/rules.mjs'
import { textsOf } from '../../scripts/language/texts.mjs'

const found = (text: string) => RULES.filter(({ find }) => find.test(text)).map(({ not }) => not)

describe('a rule of language', () => {
  test.each(RULES)(
    'finds what it is against, and nothing once it is mended: $not',
    ({ not, wrong, right }) => {
      expect([found(wrong), found(right)]).toEqual([[not], []])
    },
  )
})

describe('the texts that are looked at', () => {
  test('are paragraphs, items, headings and rows of a page, without its code', () => {
    const page =
      '# One\n\nA word\nor `two`.\n\n- Two ways\n  on\n\n```\ncode\n```\n\n| a name | a cell | [so](#so) |\n'
    expect(textsOf('a.md', page)).toEqual([
      { line: 1, text: 'One' },
      { line: 3, text: 'A word or `…`.' },
      { line: 6, text: 'Two ways on' },
      { line: 13, text: 'a name | … a cell | … [so] |' },
    ])
  })

  test('are comments and strings of code, each in one piece', () => {
    const template = ['`Took $', '{ms} ms`'].join('')
    const code = `/**\n * A word\n * more.\n */\nconst a = 'one ' +\n  'text'\n// one\n// two\nconst b = ${template}`
    expect(textsOf('a.ts', code)).toEqual([
      { line: 1, text: 'A word more. ' },
      { line: 5, text: 'one text' },
      { line: 7, text: 'one two' },
      { line: 9, text: 'Took `…` ms' },
    ])
  })

  test('are docstrings and comments of scripts', () => {
    expect(textsOf('a.py', 'def f():\n    """A word."""\n    # One more\n')).toEqual([
      { line: 2, text: 'A word.' },
      { line: 3, text: 'One more' },
    ])
  })
})
