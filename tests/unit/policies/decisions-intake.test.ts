import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Sealed } from '../../../domain/kernel/sealed.ts'
import { mayBeSameFein, normalizeFein, readFein } from '../../../domain/parties/fein.ts'
import {
  assignedPolicyNumber,
  IntakeCompleted,
  IntakeReceived,
  IntakeRefused,
  IntakeUnfinished,
  intake,
} from '../../../domain/policies/intake.ts'
import { decisions } from '../../support/decider-spec.ts'
import { runs } from '../../support/generated.ts'

const [ONE, TWO, THREE] = ['1', '2', '3'].map((digit) => digit.repeat(24)) as [string, string, string]
const sealedText = `sld1.employer/${ONE}.AAAA` as Sealed
const received = IntakeReceived.of({
  intake_id: ONE,
  tenant_id: TWO,
  environment: 'sandbox',
  command_id: 'c1',
  carrier_id: THREE,
  employer_id: TWO,
  employer: sealedText,
  fein_notation: 'person',
  owners: [],
  policy: {
    policy_number: 'WC-1',
    state: 'CA',
    class_code: '8810',
    annual_premium_cents: 1,
    effective_date: '2028-02-29',
    expiration_date: '2029-02-28',
    el_limit_tier: null,
  },
})
const receive = { type: 'Receive', data: received.data } as const
const other = { type: 'Receive', data: { ...received.data, command_id: 'c2', employer_id: THREE } } as const
const complete = { type: 'Complete', employerId: TWO, policyId: THREE } as const
const completed = IntakeCompleted.of({ intake_id: ONE, employer_id: TWO, policy_id: THREE })
const refuse = { type: 'Refuse', commandId: 'c1', reason: 'fein_conflict' } as const
const refused = IntakeRefused.of({ intake_id: ONE, reason: 'fein_conflict' })
const unfinished = IntakeUnfinished.of({ intake_id: ONE, employer_id: TWO })
const missing = 'intake_not_found'

decisions(intake, [
  ['is received', [], receive, received],
  ['keeps what was sent first', [received], other, []],
  ['is completed', [received], complete, completed],
  ['is completed once', [received, completed], { ...complete, policyId: ONE }, []],
  ['that is complete takes nothing else', [received, completed], other, []],
  ['that is unknown is not completed', [], complete, missing],
  ['is refused', [received], refuse, refused],
  ['is refused by its own command only', [received], { ...refuse, commandId: 'c2' }, []],
  ['that is complete is not refused', [received, completed], refuse, []],
  ['that is unknown is not refused', [], refuse, missing],
  ['that was refused is received again', [received, refused], other, IntakeReceived.of(other.data)],
  ['that broke off is recorded', [received], { type: 'RecordUnfinished' }, unfinished],
  ['that broke off is recorded once', [received, unfinished], { type: 'RecordUnfinished' }, []],
  ['that broke off is completed', [received, unfinished], complete, completed],
  ['that is complete is not recorded as unfinished', [received, completed], { type: 'RecordUnfinished' }, []],
  ['that was refused is not recorded as unfinished', [received, refused], { type: 'RecordUnfinished' }, []],
  ['that was refused is not completed', [received, refused], complete, missing],
])

const digits = fc.stringMatching(/^\d{9}$/)

describe('the number of an employer', () => {
  test('is the same nine digits however it is written', () => {
    fc.assert(
      fc.property(digits, (nine) => {
        const fein = `${nine.slice(0, 2)}-${nine.slice(2)}`
        const asPerson = `${nine.slice(0, 3)}-${nine.slice(3, 5)}-${nine.slice(5)}`
        expect(readFein(nine)).toEqual({ fein, notation: 'digits' })
        expect(readFein(fein)).toEqual({ fein, notation: 'employer' })
        expect(readFein(asPerson)).toEqual({ fein, notation: 'person' })
        // as a person's it is taken by intake alone
        expect(normalizeFein(asPerson)).toBeNull()
      }),
      runs(),
    )
  })

  test("is an employer's and a person's at once, unless the notation tells them apart", () => {
    expect(mayBeSameFein('person', 'employer')).toBe(false)
    expect(mayBeSameFein('employer', 'person')).toBe(false)
    for (const known of ['employer', 'person'] as const) {
      expect(mayBeSameFein('digits', known)).toBe(true)
      expect(mayBeSameFein(known, known)).toBe(true)
      // nine digits do not tell, and earlier releases kept nothing of the notation with the employer
      expect(mayBeSameFein(known, undefined)).toBe(true)
    }
  })

  test('is nothing else', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[\d-]{0,12}$/), (text) => {
        const isOne = /^(\d{9}|\d{2}-\d{7}|\d{3}-\d{2}-\d{4})$/.test(text)
        expect(readFein(text) !== null).toBe(isOne)
      }),
      runs(),
    )
    for (const value of [null, 123456789, '１２３４５６７８９', '12-3456789\n', ' 12-3456789', {}]) {
      expect(readFein(value)).toBeNull()
    }
  })
})

describe('an assigned policy number', () => {
  const ids = fc.stringMatching(/^[0-9a-f]{24}$/)

  test('is of the documented form, and another for another policy', () => {
    fc.assert(
      fc.property(fc.uniqueArray(ids, { minLength: 2, maxLength: 50 }), (all) => {
        const numbers = all.map(assignedPolicyNumber)
        for (const number of numbers) expect(number).toMatch(/^WC(-[0-9A-HJKMNP-TV-Z]{4}){3}$/)
        const bits = new Set(all.map((one) => BigInt(`0x${one}`) & ((1n << 60n) - 1n)))
        expect(new Set(numbers).size).toBe(bits.size)
      }),
      runs(),
    )
  })
})
