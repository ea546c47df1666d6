import { describe, expect, it } from 'vitest'
import type { ResultOf } from '../../../application/ports/read-database.ts'
import { equalIfGiven, type Parameter, statement } from '../../../application/queries/statement.ts'

describe('a statement', () => {
  it('is text with the places of its parameters', () => {
    const found = statement(
      'test/page',
      (db, $: Parameter<{ employerId: string; limit: number; environment: string | null }>) =>
        db
          .selectFrom('policies')
          .select(['policy_id', 'fee_count'])
          .where('employer_id', '=', $('employerId'))
          .where((eb) => equalIfGiven(eb, $, 'environment'))
          .orderBy('seq', 'desc')
          .limit($('limit')),
    )
    expect(found).toEqual({
      name: 'test/page',
      text:
        'select "policy_id", "fee_count" from "read_model"."policies" where "employer_id" = $1' +
        ' and (cast($2 as text) is null or "environment" = $3) order by "seq" desc limit $4',
      parameters: ['employerId', 'environment', 'environment', 'limit'],
    })
  })

  it('carries no value of its own', () => {
    const active = () =>
      statement('test/active', (db) => db.selectFrom('policies').select('seq').where('status', '=', 'active'))
    expect(active).toThrow('test/active has a value that is no parameter')
  })

  it('shares its name with no other', () => {
    const again = () => statement('test/twice', (db) => db.selectFrom('policies').select('seq'))
    again()
    expect(again).toThrow('two statements test/twice')
  })

  it('is checked against the tables: names, parameters and rows', () => {
    const found = statement(
      'test/types',
      (db, $: Parameter<{ id: string; count: number; entity_id: string }>) => {
        const policies = db.selectFrom('policies')
        // @ts-expect-error no such table
        db.selectFrom('policy')
        // @ts-expect-error no such column
        policies.select('policy_name')
        // @ts-expect-error no such column
        policies.orderBy('sequence')
        // @ts-expect-error no such column
        policies.where('number', '=', $('id'))
        // @ts-expect-error a column of another table
        policies.where((eb) => equalIfGiven(eb, $, 'entity_id'))
        // @ts-expect-error a number where the column holds text
        policies.where('policy_number', '=', $('count'))
        // @ts-expect-error no such parameter
        $('limit')
        return policies.select(['seq', 'billing_type', 'locations']).where('policy_id', '=', $('id'))
      },
    )
    const row: ResultOf<typeof found> = { seq: 1, billing_type: null, locations: [] }
    // @ts-expect-error not one of the billing types
    const other: ResultOf<typeof found> = { ...row, billing_type: 'MONTHLY' }
    // @ts-expect-error not selected
    expect(other.policy_id).toBeUndefined()
  })
})
