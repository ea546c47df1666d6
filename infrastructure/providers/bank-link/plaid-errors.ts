import { BankLinkRefused, type RefusedWhy } from '../../../application/ports/bank-link.ts'
import { ProviderUnavailable } from '../../../application/ports/provider.ts'

/** What Plaid says of a call that it does not carry out. */
interface PlaidAnswer {
  readonly status: number
  readonly type: string
  readonly code: string
}

/** Codes that stand for one thing here; see https://plaid.com/docs/errors/. */
const WHY: ReadonlyMap<string, RefusedWhy> = new Map<string, RefusedWhy>([
  ['INVALID_PUBLIC_TOKEN', 'public_token'],
  ...[
    'ITEM_LOGIN_REQUIRED',
    'INVALID_CREDENTIALS',
    'INVALID_MFA',
    'INSUFFICIENT_CREDENTIALS',
    'ITEM_LOCKED',
    'USER_SETUP_REQUIRED',
    'USER_PERMISSION_REVOKED',
    'ACCESS_NOT_GRANTED',
    'ITEM_NOT_FOUND',
    'INVALID_ACCESS_TOKEN',
  ].map((code) => [code, 'login'] as const),
  ...[
    'PRODUCTS_NOT_SUPPORTED',
    'PRODUCT_NOT_ENABLED',
    'ADDITIONAL_CONSENT_REQUIRED',
    'NO_ACCOUNTS',
    'NO_AUTH_ACCOUNTS',
    'INVALID_PRODUCT',
  ].map((code) => [code, 'product'] as const),
])
/** Types of errors that pass by themselves. */
const PASSING: ReadonlySet<string> = new Set(['API_ERROR', 'RATE_LIMIT_EXCEEDED', 'INSTITUTION_ERROR'])
/** What is wrong with the settings of this service, not with what was asked. */
const OF_KEYS: ReadonlySet<string> = new Set(['INVALID_API_KEYS', 'UNAUTHORIZED_ENVIRONMENT'])

const CODE = /^[A-Z_]{1,80}$/

/**
 * What an error of the SDK means. It holds the keys of this service and Plaid's own words, so that only its code goes on.
 * @returns the error itself when it is none of the SDK's.
 */
export function plaidRefusal(error: unknown): unknown {
  if (!isOfSdk(error)) return error
  const answer = answerOf(error)
  if (answer === null) {
    return new ProviderUnavailable('The bank link could not be reached, or did not answer in time')
  }
  const { status, type, code } = answer
  if (OF_KEYS.has(code)) {
    return new ProviderUnavailable('The bank link does not accept the keys of this service')
  }
  if (status === 429 || status >= 500 || PASSING.has(type) || code === 'PRODUCT_NOT_READY') {
    return new ProviderUnavailable(`The bank link is busy or failed (${code})`)
  }
  return new BankLinkRefused(`The bank link refused (${code})`, WHY.get(code) ?? null)
}

/** The code of an error of Plaid; null for any other. */
export function plaidCode(error: unknown): string | null {
  return isOfSdk(error) ? (answerOf(error)?.code ?? null) : null
}

/** The SDK throws the errors of axios, which it does not hand out. */
interface SdkError {
  readonly isAxiosError: true
  readonly response?: { readonly status: number; readonly data: unknown }
}

function isOfSdk(error: unknown): error is SdkError {
  return typeof error === 'object' && error !== null && 'isAxiosError' in error && error.isAxiosError === true
}

function answerOf({ response }: SdkError): PlaidAnswer | null {
  if (response === undefined) return null
  const { error_type, error_code } = (response.data ?? {}) as { error_type?: unknown; error_code?: unknown }
  const word = (value: unknown) => (typeof value === 'string' && CODE.test(value) ? value : null)
  return {
    status: response.status,
    type: word(error_type) ?? 'unknown',
    code: word(error_code) ?? `HTTP ${response.status}`,
  }
}
