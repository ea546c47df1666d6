import { describe, expect, it, vi } from 'vitest'
import { MAX_DEPTH, parseInSlices, parseJson } from '../../../interfaces/http/json/strict-json.ts'

const parse = (text: string) => parseJson(Buffer.from(text))

describe('parseJson', () => {
  it.each(['', ' ', '{oops', '{"a":1,}', '[1 2]', '"open', '{"a":1}}', '\ufeff{}', "{'a':1}", 'NaN'])(
    'refuses %j as bad syntax',
    (text) => {
      expect(parse(text)).toMatchObject({ ok: false, kind: 'syntax' })
    },
  )

  it('never quotes the body in a message', () => {
    const answer = parse('{"ssn": 123-45-6789}')
    expect(answer).toMatchObject({ ok: false, kind: 'syntax' })
    expect(JSON.stringify(answer)).not.toContain('6789')
  })

  it('refuses bytes that are no UTF-8', () => {
    for (const bytes of [
      [0x22, 0xff, 0x22],
      [0x22, 0xc0, 0x80, 0x22],
      [0x22, 0xed, 0xa0, 0x80, 0x22],
    ]) {
      expect(parseJson(Buffer.from(bytes))).toMatchObject({ ok: false, kind: 'encoding' })
    }
  })

  it.each([5, 32_768, 70_001])(
    'says where text of another encoding begins, after %d characters',
    (before) => {
      const text = `"${'ä'.repeat(before)}Pe`
      const bytes = Buffer.concat([Buffer.from(text), Buffer.from('ña"', 'latin1')])
      const message = `The body is not valid UTF-8: byte f1 at offset ${Buffer.byteLength(text)}`
      expect(parseJson(bytes)).toMatchObject({ message })
    },
  )

  it('says so of a byte too many after a whole character', () => {
    const bytes = Buffer.of(0x22, 0xc3, 0xa9, 0x80, 0x22)
    expect(parseJson(bytes)).toMatchObject({ message: 'The body is not valid UTF-8: byte 80 at offset 3' })
  })

  it.each([
    ['{"a":1,"a":2}', 'a'],
    ['{"a":{"b":[0,{"c":1,"d":[1,2],"c":3}]}}', 'a.b[1].c'],
    ['[[],[{"k":"x","k":"x"}]]', '[1][0].k'],
    ['{"a":1,"\\u0061":2}', 'a'],
    ['{"__proto__":1,"__proto__":2}', '__proto__'],
    ['{"" : 1, "" : 2}', ''],
    ['{"a":{"x":",:}\\"{"}, "b" : ["a","a"] , "b":0}', 'b'],
  ])('names the duplicate key of %s', (text, path) => {
    expect(parse(text)).toMatchObject({ ok: false, kind: 'duplicate_key', path })
  })

  it('accepts one key in several objects, and colons and braces inside strings', () => {
    expect(parse('[{"a":1},{"a":2,"b":{"a":3}},"a:{[\\":"]').ok).toBe(true)
  })

  it('takes exactly the allowed depth, of arrays and objects together', () => {
    expect(parse('['.repeat(MAX_DEPTH) + ']'.repeat(MAX_DEPTH)).ok).toBe(true)
    expect(parse('['.repeat(MAX_DEPTH + 1) + ']'.repeat(MAX_DEPTH + 1))).toMatchObject({ kind: 'depth' })
    expect(parse('{"a":['.repeat(33) + ']}'.repeat(33))).toMatchObject({ kind: 'depth' })
    expect(parse(`"${'['.repeat(1000)}"`).ok).toBe(true)
    expect(parse(`[${'[],'.repeat(1000)}[]]`).ok).toBe(true)
  })

  it('survives a million open brackets', () => {
    expect(parse('['.repeat(1_000_000))).toMatchObject({ ok: false, kind: 'depth' })
    expect(parse('{"a":'.repeat(1_000_000))).toMatchObject({ ok: false, kind: 'depth' })
  })

  it.each([
    ['{"a":["\\\\","\\"","a\\\\\\x"]}', '\\x'],
    ['["\\n\\u00e9\\u12G4"]', '\\u12G4'],
    ['{"\\\\\\ ":1}', '\\ '],
    ['{"a":1,"b":"a\tb"}', '\t'],
  ])('tells where %s is no JSON', (text, fault) => {
    const message = `The body is not valid JSON (at character ${text.lastIndexOf(fault)})`
    expect(parse(text)).toEqual({ ok: false, kind: 'syntax', message })
  })

  it('reads a text of a million escapes in one step, not escape by escape', () => {
    const looks = vi.spyOn(RegExp.prototype, 'test')
    expect(parse(`["${'\\n'.repeat(1_000_000)}"]`)).toEqual({ ok: true, value: ['\n'.repeat(1_000_000)] })
    expect(looks.mock.calls.length).toBeLessThan(10)
    looks.mockRestore()
  })

  it('tells of one object among many as of one alone', () => {
    const many = (odd: string) => `[{"a":1,"b":2},{"a":3},${odd},{"a":4}]`
    expect(parse(many('{"a":1,"a":2}'))).toMatchObject({ kind: 'duplicate_key', path: '[2].a' })
    expect(parse(many('{"a":0.10000000000000000001}'))).toMatchObject({ kind: 'numbers', path: '[2].a' })
    expect(parse(many('{"__proto__":1}'))).toMatchObject({ ok: true, leftOut: ['[2].__proto__'] })
    expect(parse(many('{"a":1,}'))).toMatchObject({ message: 'The body is not valid JSON (at character 30)' })
    expect(parse(many('{"a":"\\u0000"}'))).toMatchObject({ kind: 'characters', path: '[2].a' })
    expect(parse(many('{"a":1e2}'))).toEqual({
      ok: true,
      value: [{ a: 1, b: 2 }, { a: 3 }, { a: 100 }, { a: 4 }],
    })
  })

  it('tells of what nests in an object as of what stands alone', () => {
    const within = (odd: string) => `[{"a":[1,{"b":"x\\n"}]},{"a":{"b":[${odd},{"a":4}]}},{"a":4}]`
    expect(parse(within('{"a":1,"a":2}'))).toMatchObject({ kind: 'duplicate_key', path: '[1].a.b[0].a' })
    expect(parse(within('{"a":1,"\\u0061":2}'))).toMatchObject({ kind: 'duplicate_key' })
    expect(parse(within('{"\\/":1,"/":2}'))).toMatchObject({ kind: 'duplicate_key', path: '[1].a.b[0]./' })
    expect(parse(within('{"a":0.10000000000000000001}'))).toMatchObject({ path: '[1].a.b[0].a' })
    expect(parse(within('{"__proto__":1}'))).toMatchObject({ ok: true, leftOut: ['[1].a.b[0].__proto__'] })
    expect(parse(within('{"a":"\\ud800"}'))).toMatchObject({ kind: 'characters', path: '[1].a.b[0].a' })
    for (const odd of ['{]', '{"a":1', '}', '[{}', '{"a":"\\x"}']) {
      expect(parse(within(odd))).toMatchObject({ ok: false, kind: 'syntax' })
    }
    for (const odd of [
      '{}',
      '[]',
      '{"a":{"b":{"c":{"d":[[],{}]}}}}',
      '{"a":"{[\\"]}","b":[-1.5,null,true]}',
    ]) {
      expect(parse(within(odd))).toEqual({ ok: true, value: JSON.parse(within(odd)) })
    }
  })

  it('tells of an object the same at once as member by member', () => {
    const long = Array.from({ length: 300 }, (_, index) => `"k${index}":${index}`).join()
    for (const members of [long, '"a":1,"b":"x"', '"1":true,"0":null,"a":-1.50', ' "a" : 1 ,\n"b" : "" ']) {
      for (const text of [`{${members}}`, `[{${members}},{"z":[{${members}}]}]`]) {
        expect(parse(text)).toEqual({ ok: true, value: JSON.parse(text) })
      }
    }
    for (const text of [
      '{"a":1,}',
      '{"a":01}',
      '{"a":1.}',
      '{"a":--1}',
      '{"a":-}',
      '{\u00a0"a":1}',
      '{"a":"\0"}',
    ]) {
      expect(parse(text)).toMatchObject({ ok: false, kind: 'syntax' })
    }
    expect(parse(`${'['.repeat(MAX_DEPTH)}{"a":1}`)).toMatchObject({ kind: 'depth' })
  })

  it.each([
    ['{"employees":[{},{},{},{"first_name":"A\\u0000b"}]}', 'employees[3].first_name'],
    ['{"a":"\\ud800"}', 'a'],
    ['{"a":["x","\\uDFFF\\ud800"]}', 'a[1]'],
    ['{"a":{"b\\u0000":1}}', 'a.(key)'],
    ['"\\ud83dx"', ''],
  ])('names where %s holds a refused character', (text, path) => {
    expect(parse(text)).toMatchObject({ ok: false, kind: 'characters', path })
  })

  it('accepts escapes that look alike but are whole characters', () => {
    expect(parse('{"a":"\\ud83d\\ude00 \\\\u0000 \\u00e9 \\u0001 \\\\ud800"}')).toMatchObject({
      ok: true,
      value: { a: '😀 \\u0000 é \u0001 \\ud800' },
    })
  })

  it.each([
    ['{"amount_cents":1000.0000000000000001}', 'amount_cents'],
    ['{"a":[0,{"b":999999999.9999999999}]}', 'a[1].b'],
    ['{"a":"1.0000000000000001","b" : -1.0000000000000001 }', 'b'],
    ['[0.1,0.100000000000000001]', '[1]'],
    ['{"a":1e-400}', 'a'],
    ['[4e-324]', '[0]'],
    ['[9007199254740991.4]', '[0]'],
    ['1.00000000000000005', ''],
  ])('names where %s holds a number that reading changes', (text, path) => {
    expect(parse(text)).toMatchObject({ ok: false, kind: 'numbers', path })
  })

  it.each([
    ...['0', '-0', '0.0', '-0.0e7', '1.0', '1.10', '1e3', '1E+3', '100e-2', '0.1', '-123.4500', '5e-324'],
    ...['0.30000000000000004', '1234567.890123456', '9007199254740991', '1.7976931348623157E+308'],
    ...[
      '1000.0000000000000000000',
      '0.0000000000000000000010',
      // as programs print doubles with 17 digits
      ...['0.10000000000000001', '1234.5599999999999'],
      '10000000000000000000e-19',
      '0e99999999999999999999',
    ],
    // what is larger is refused by the field that it stands in
    ...['9007199254740992', '9007199254740993', '100000000000000000000', '12345678901234567890.5', '-1e400'],
  ])('takes %s', (number) => {
    for (const text of [`[0,${number} ]`, `{"a":${number}}`, number]) {
      expect(parse(text)).toEqual({ ok: true, value: JSON.parse(text) })
    }
  })

  it('takes a number of a thousand characters', () => {
    const zeros = '0'.repeat(998)
    for (const text of [`[1.${zeros}]`, `[-1${zeros}]`, `{"a":0.${zeros.slice(2)}e1}`]) {
      expect(parse(text)).toEqual({ ok: true, value: JSON.parse(text) })
    }
    expect(parse(`[0.${zeros.slice(1)}1]`)).toMatchObject({ ok: false, kind: 'numbers', path: '[0]' })
  })

  it.each([
    ['zeros', (digits: number) => `0.${'0'.repeat(digits)}1`],
    ['ones', (digits: number) => `0.${'1'.repeat(digits)}`],
    ['no fraction', (digits: number) => `-${'7'.repeat(digits)}`],
    ['an exponent', (digits: number) => `1e${'0'.repeat(digits)}1`],
  ])('refuses a longer number: %s', (_what, number) => {
    const before = '{"id":1,"a":[{"b":[0],"c":"x,"},{"d":[[1,2],"é",{"e" : '
    const places = { 'a[1].d[2].e': before, '': '', '[0]': '[ ', '[1]': '[0,' }
    for (const [path, text] of Object.entries(places)) {
      for (const digits of [1_000, 100_000]) {
        const message = `${path || 'The body'} is a number of more than 1000 characters; send fewer digits`
        expect(parse(`${text}${number(digits)} `)).toEqual({ ok: false, kind: 'numbers', message, path })
      }
    }
  })

  it('names no place for a long number that stands where no value belongs', () => {
    const digits = '1'.repeat(2_000)
    for (const text of [
      `{${digits}`,
      `[{"a":1},{${digits}:1}]`,
      `{"a":1, ${digits}`,
      `{} ${digits}`,
      `[1 ${digits}]`,
    ]) {
      expect(parse(text)).toMatchObject({ ok: false, kind: 'syntax' })
    }
    expect(parse(`{"\\x":${digits}}`)).toMatchObject({ ok: false, kind: 'syntax' })
  })

  it('leaves __proto__ out, so that copies cannot pick it up', () => {
    const answer = parse(
      '{"row":{"__proto__":{"admin":true,"x":{"y":1}},"constructor":{"prototype":1},"a":1}}',
    )
    expect(answer.ok).toBe(true)
    const { row } = answer.value as { row: Record<string, unknown> }
    expect(Object.keys(row)).toEqual(['constructor', 'a'])
    expect(Object.assign({}, row)).not.toHaveProperty('admin')
    expect(({} as Record<string, unknown>).admin).toBeUndefined()
    expect(answer).toMatchObject({ leftOut: ['row.__proto__'] })
    expect(parse('{"row":{"a":1}}')).not.toHaveProperty('leftOut')
    expect(parse('[{},{"a":[{},{"__proto__":1}]}]')).toMatchObject({ leftOut: ['[1].a[1].__proto__'] })
  })

  it('names a hundred of those left out, and none that is ignored, however many there are', () => {
    const rows = list('{"__proto__":1}', 1_000)
    expect(parse(rows)).toMatchObject({ leftOut: { length: 100, 99: '[99].__proto__' } })
    const bytes = Buffer.from(`{"rows":${rows},"__proto__":1,"a":{"__proto__":1}}`)
    expect(parseJson(bytes, (path) => path.startsWith('rows['))).toMatchObject({
      leftOut: ['__proto__', 'a.__proto__'],
    })
  })

  const tooMany = { ok: false, kind: 'values', message: 'The body holds more than 2000000 values' }

  it('takes two million values and no more', () => {
    expect(parse(list('1', 1_999_999)).ok).toBe(true)
    expect(parse(list('[1]', 1_000_000))).toMatchObject(tooMany)
  })

  // the lists above are shorter
  it.each(['1,1', '{"a":1}'])('takes no more of them in a list of %s', { tags: 'long' }, (two) => {
    expect(parse(list(two, 1_000_000))).toMatchObject(tooMany)
  })

  it('takes no more than ten thousand members in one object', () => {
    const object = (members: number) =>
      `{${Array.from({ length: members }, (_, index) => `"k${index}":0`).join()}}`
    expect(parse(object(10_000)).ok).toBe(true)
    expect(parse(object(10_001))).toMatchObject({ ok: false, kind: 'values' })
  })
})

/** A list of so many times the same element. */
function list(element: string, count: number): string {
  return `[${`${element},`.repeat(count - 1)}${element}]`
}

describe('a body of many slices', () => {
  // more than a dozen slices of 32 KiB each, with a surrogate pair that makes all strings be looked at
  const rows = Array.from({ length: 4_000 }, (_, index) => ({
    employee_first_name: 'Ada 😀',
    employee_last_name: `Baker ${index}`,
    class_code: '8810',
    gross_wages: 1234.56,
    other: [[[]], { a: null }],
  }))
  const escaped = JSON.stringify({ id: 7, rows }).replaceAll('😀', '\\ud83d\\ude00')

  it('gives others a turn with every slice', () => {
    const steps = parseInSlices(Buffer.from(escaped), 32 * 1024)
    let slices = 0
    let step = steps.next()
    while (!step.done) {
      slices += 1
      step = steps.next()
    }
    expect(step.value).toEqual({ ok: true, value: { id: 7, rows } })
    expect(slices).toBeGreaterThanOrEqual(Math.floor(escaped.length / (32 * 1024)) - 2)
  })

  it.each([
    '{"rows":[1,,2]}',
    '{"rows":[1 2]}',
    '{"rows":[[1][2]]}',
    '{"rows":[1,2}}',
    '{"a" [1,2],"b":3}',
    '{"a":1,:[1,2]}',
    '{"a":[1,2],}',
    '[1,2],3',
    '[1,2]3',
    ',[1,2]',
  ])('is refused as bad syntax where it says %s', (text) => {
    expect(parse(text)).toMatchObject({ ok: false, kind: 'syntax' })
  })

  it('keeps no view of the whole body in its values', () => {
    const parsed = vi.spyOn(JSON, 'parse')
    const { value } = parse('{"a":"a text that is long","b":"short"}') as { value: unknown }
    expect(value).toEqual({ a: 'a text that is long', b: 'short' })
    expect(parsed.mock.calls).toEqual([['[{"a":"a text that is long","b":"short"}]']])
    parsed.mockClear()
    expect(parse('["a text that is long","short"]')).toMatchObject({ ok: true })
    expect(parsed.mock.calls).toEqual([['"a text that is long"']])
    parsed.mockRestore()
  })

  it('tells the character of an error from the beginning of the body', () => {
    const text = '{"é":"😀","rows":[1,2 3]}'
    expect(parse(text)).toMatchObject({
      message: `The body is not valid JSON (at character ${text.indexOf('3')})`,
    })
  })
})
