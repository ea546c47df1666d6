import { z } from 'zod'
import { RETURN_CODE } from '../../domain/banking/debits/return-codes.ts'
import { date, optional, text } from './fields.ts'

/** What the simulated bank rail is told to report of a debit, by operators and in the sandbox by partners. */

export const settlement = z.object({
  processor_status: optional(text(100)),
  transmission_date: optional(date()),
  effective_date: optional(date()).describe('The day on which the bank booked it'),
})

export const returned = z.object({
  return_code: z.string().regex(RETURN_CODE, 'must be a return code, R01 to R85'),
})
