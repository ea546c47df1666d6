import { z } from 'zod'
import type { BankAccount } from '../../application/ports/bank-rail.ts'
import { isRoutingNumber } from '../../domain/banking/accounts/routing-number.ts'
import { optional, text, word } from './fields.ts'

/** What a payer says of the bank account that is to be debited, whether a program sends it or a form. */
export const payersAccountRequest = z.object({
  account_holder_name: text(200),
  routing_number: z
    .string()
    .refine(isRoutingNumber, 'must be a routing number of 9 digits whose check digit is right'),
  account_number: z.string().regex(/^\d{5,17}$/, 'must be 5 to 17 digits'),
  account_type: word('checking', 'savings'),
  bank_name: optional(text(200)),
  authorized: z.literal(true, 'must be true: the account is debited only with your authorization'),
})

export function payersAccount(request: z.output<typeof payersAccountRequest>): BankAccount {
  return {
    holderName: request.account_holder_name,
    routingNumber: request.routing_number,
    accountNumber: request.account_number,
    accountType: request.account_type,
    bankName: request.bank_name,
  }
}
