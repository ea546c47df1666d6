import { z } from 'zod'
import { state, text, wholeNumber, wrongType } from '../../endpoints/fields.ts'
import { list, texts } from '../host/values.ts'

/** The terms of a policy as operators send them. */

export const classCodes = texts().describe('Class codes that the policy covers')

export const states = list(state())
  .transform((all) => [...new Set(all)])
  .describe('2-letter state abbreviations')

export const locations = list(z.object({ id: text(), state: state() }))

const RATE = 'must be a decimal as a string, like "0.35", with at most 6 decimals'

export const rates = list(
  z.object({
    class_code: text(),
    state: state(),
    rate_per_100: z
      .string(wrongType(RATE))
      .regex(/^\d{1,6}(?:\.\d{1,6})?$/, RATE)
      .describe('Dollars of premium per 100 dollars of wages'),
  }),
)
  .superRefine((all, context) => {
    const known = new Set<string>()
    for (const [index, { class_code, state }] of all.entries()) {
      const key = JSON.stringify([class_code, state])
      if (known.has(key)) {
        context.addIssue({
          code: 'custom',
          path: [index, 'class_code'],
          message: `has two rates in ${state}`,
        })
      }
      known.add(key)
    }
  })
  .describe('One rate at the most for a class code in a state')

export const payrollFrequency = text(40)
  .regex(/^[A-Za-z]+(?:_[A-Za-z]+)*$/, 'must be an upper-case word, like WEEKLY')
  .toUpperCase()
  .meta({ pattern: '^\\s*[A-Za-z]+(_[A-Za-z]+)*\\s*$' })

export const fees = list(z.object({ label: text(), amount_cents: wholeNumber() }))
