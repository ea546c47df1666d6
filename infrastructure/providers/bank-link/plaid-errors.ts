import { z } from 'zod'
import {
  ProviderRefused,
  ProviderUnavailable,
  type RefusedAbout,
} from '../../../application/ports/provider.ts'

/** Codes that stand for one thing here; see https://plaid.com/docs/errors/. */
const ABOUT: ReadonlyMap<string, RefusedAbout> = new Map<string, RefusedAbout>([
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
const ERROR = z.object({ error_type: z.string(), error_code: z.string() })

/** Plaid refused a call. */
export class PlaidRefused extends ProviderRefused {
  readonly code: string

  constructor(code: string) {
    super(`The bank link refused (${code})`, ABOUT.get(code) ?? null)
    this.code = code
  }
}

/**
 * What an answer that is no success means: a refusal where Plaid says so itself, as its errors are formed. Its own words may
 * quote what was sent, so that only its code goes on.
 * @param status the HTTP status.
 */
export function refusalOf(status: number, body: unknown): PlaidRefused | ProviderUnavailable {
  const { success, data } = ERROR.safeParse(body)
  const code = success && CODE.test(data.error_code) ? data.error_code : `HTTP ${status}`
  if (OF_KEYS.has(code)) {
    return new ProviderUnavailable('The bank link does not accept the keys of this service')
  }
  const isRefusal = success && status >= 400 && status < 500 && status !== 429
  if (!isRefusal || PASSING.has(data.error_type) || code === 'PRODUCT_NOT_READY') {
    return new ProviderUnavailable(`The bank link is busy or failed (${code})`)
  }
  return new PlaidRefused(code)
}

/** Whether the SDK threw it, whose errors hold the keys of this service; they are those of axios, which it does not hand out. */
export function isOfSdk(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'isAxiosError' in error && error.isAxiosError === true
}
