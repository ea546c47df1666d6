import { describe, expect, test } from 'vitest'
import { OperatorEndpoints } from '../../../interfaces/operator-api/console/calls.ts'
import { bodyOfForm, fieldsOf } from '../../../interfaces/operator-api/console/fields.ts'
import { resources } from '../../../interfaces/operator-api/console/resources.ts'
import { json, table, thing } from '../../../interfaces/operator-api/console/values.ts'
import { operatorEndpoints } from '../../../interfaces/operator-api/endpoints.ts'

const endpoints = new OperatorEndpoints(operatorEndpoints)

describe('the console', () => {
  test('names only endpoints of the operator API', () => {
    const routes = resources.flatMap(({ list, show, also, actions, alsoActions, whole, parts }) => [
      ...[list, show, also].filter((one) => one !== undefined),
      ...[actions, alsoActions, whole, ...Object.values(parts ?? {})].flatMap((all) =>
        (all ?? []).map(({ route }) => route),
      ),
    ])
    expect(routes.filter((route) => !endpoints.has(route))).toEqual([])
  })

  test('asks by a form for every field of an action that is neither a list nor an object', () => {
    const fields = fieldsOf(endpoints.of('POST /projections/{name}/redrive').body)
    expect(fields).toMatchObject([
      { name: 'stream', kind: 'text', isRequired: false },
      { name: 'dry_run', kind: 'flag', default: 'false' },
    ])
    expect(bodyOfForm(fields, { stream: ' ', dry_run: 'true', other: 'x' })).toEqual({ dry_run: true })
    expect(fieldsOf(endpoints.of('POST /debits/{transaction_id}/reject').body)).toMatchObject([
      { name: 'note', kind: 'reason', isRequired: true },
    ])
    expect(fieldsOf(endpoints.of('GET /debits').query)).toContainEqual(
      expect.objectContaining({ name: 'status', choices: expect.arrayContaining(['quarantined']) }),
    )
    const times = fieldsOf(endpoints.of('GET /streams/{stream}/state').query)
    expect(bodyOfForm(times, { as_of: '2026-11-29T10:00', revision: '3' })).toEqual({
      as_of: '2026-11-29T10:00:00Z',
      revision: 3,
    })
  })

  test('escapes whatever it shows, and cuts what would make a page large', () => {
    const hostile = '<script>"&\'</script>'
    expect(
      thing({ [hostile]: hostile, list: [{ [hostile]: hostile }], deep: { of: { it: { a: hostile } } } })
        .text,
    ).not.toContain('<script')
    const rows = Array.from({ length: 1_000 }, () => ({ data: '"'.repeat(10_000) }))
    expect(Buffer.byteLength(table('Rows', rows, { data: 'data' }).text)).toBeLessThan(45 * 1024)
    expect(table('Rows', rows, { data: 'data' }).text).toContain('more do not fit here')
    expect(Buffer.byteLength(json({ lines: rows.map(() => '"'.repeat(100)) }).text)).toBeLessThan(30 * 1024)
    expect(Buffer.byteLength(json({ one: '"'.repeat(100_000) }).text)).toBeLessThan(30 * 1024)
  })
})
