import type { ProcessorKind } from '../../domain/payments/processor/processor-kinds.ts'
import { SafeError } from './safe-error.ts'

/**
 * A provider outside (card processor, mail, text) could not be reached or did not answer in time. What was asked of it may
 * have happened: the same call again, under the same key, tells. The message names no person and no secret.
 */
export class ProviderUnavailable extends SafeError {
  override readonly name = 'ProviderUnavailable'
  /** What was asked never got there; only where that is certain. */
  readonly nothingHappened: boolean

  constructor(message: string, { nothingHappened = false }: { readonly nothingHappened?: boolean } = {}) {
    super(message)
    this.nothingHappened = nothingHappened
  }
}

/** The card processor that something is at is not configured any more. */
export class ProcessorNotConfigured extends ProviderUnavailable {
  constructor(kind: ProcessorKind) {
    super(`The payment is at a card processor that is not configured any more (${kind})`, {
      nothingHappened: true,
    })
  }
}

/**
 * What of a request a provider may refuse: a value that is a caller's choice, a `login` that the user of a bank link has to
 * do again at the bank, or a `product` that the bank or the user does not give.
 */
export type RefusedAbout =
  | 'payment_method'
  | 'amount'
  | 'email'
  | 'return_url'
  | 'public_token'
  | 'login'
  | 'product'

/** A provider refused what was asked of it: asking again does not help. */
export class ProviderRefused extends SafeError {
  override readonly name = 'ProviderRefused'
  /** What of the request it would not have, where that is known. */
  readonly about: RefusedAbout | null

  /** @param message names no person and no secret. */
  constructor(message: string, about: RefusedAbout | null = null) {
    super(message)
    this.about = about
  }
}
