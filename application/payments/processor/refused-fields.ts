import { type Rejection, reject } from '../../../domain/kernel/rejection.ts'
import { ProviderRefused } from '../../ports/provider.ts'

/** Why the card processor refuses a value, to be read after the field's name. */
const REFUSED = {
  payment_method: 'names no payment method that the employer can be charged by',
  amount: 'is no amount that the card processor takes',
  email: 'is no email address that the card processor takes',
  return_url: 'is no address that the card processor takes',
} as const
type Refusable = keyof typeof REFUSED

/**
 * What a call of the card processor yields, or the rejection of the caller's value that it would not have.
 * @param fields the caller's names of what the processor may refuse.
 * @throws whatever else the call throws.
 */
export async function unlessRefused<Answer>(
  call: () => Promise<Answer>,
  fields: Readonly<Partial<Record<Refusable, string>>>,
): Promise<Answer | Rejection> {
  try {
    return await call()
  } catch (error) {
    const about = error instanceof ProviderRefused ? (error.about as Refusable | null) : null
    const field = about && fields[about]
    if (!field) throw error
    // an amount has the right form: how much is too much, or too little, is for the processor to say
    const kind = about === 'amount' ? 'conflict' : 'invalid'
    return reject(kind, `${about}_refused`, `${field} ${REFUSED[about]}`, field)
  }
}
