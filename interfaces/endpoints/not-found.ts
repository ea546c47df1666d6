import { z } from 'zod'
import { type ErrorCode, HttpError } from '../http/errors.ts'

/** The code of the refusal of what is not there. */
export const NOT_FOUND_CODES = {
  'ACH account': 'ach_account_not_found',
  alert: 'alert_not_found',
  'API client': 'client_not_found',
  'bank account': 'bank_account_not_found',
  'bank connection': 'bank_connection_not_found',
  'bank credit': 'bank_credit_not_found',
  'bank debit': 'debit_not_found',
  'bank file': 'bank_file_not_found',
  'bank report': 'bank_report_not_found',
  'bank transaction': 'bank_transaction_not_found',
  carrier: 'carrier_not_found',
  credential: 'credential_not_found',
  'debit collection': 'debit_collection_not_found',
  employer: 'employer_not_found',
  file: 'file_not_found',
  'financing checkout': 'financing_session_not_found',
  'financing session': 'financing_session_not_found',
  'inbound connection': 'connection_not_found',
  intake: 'intake_not_found',
  operator: 'operator_not_found',
  'payment link': 'payment_link_not_found',
  'payment link, payment session or subscription': 'payment_link_not_found',
  'payment session': 'payment_session_not_found',
  'payroll company': 'payroll_company_not_found',
  'pending action': 'pending_action_not_found',
  'payroll file': 'file_not_found',
  policy: 'policy_not_found',
  subscription: 'subscription_not_found',
  'webhook event': 'webhook_event_not_found',
  'webhook subscription': 'subscription_not_found',
  'processor notice': 'processor_notice_not_found',
  reconciliation: 'reconciliation_not_found',
  'record of the legacy service': 'legacy_collection_not_found',
  tenant: 'tenant_not_found',
  transaction: 'transaction_not_found',
} as const satisfies Readonly<Record<string, ErrorCode>>
export type NamedThing = keyof typeof NOT_FOUND_CODES

/** The refusal of an id that names nothing, the same whether it could be the id of one or not. */
export function noSuch(what: NamedThing): HttpError {
  return new HttpError(404, null, `There is no such ${what}`, { code: NOT_FOUND_CODES[what] })
}

/** The codes of what parameters of paths name; of one that is not in it: `not_found`. */
const CODES = z.registry<{ readonly code: ErrorCode }>()

/** A parameter of a path. @param code of the refusal of one that names nothing. */
export function inPath<Schema extends z.ZodType>(code: ErrorCode, schema: Schema): Schema {
  CODES.add(schema, { code })
  return schema
}

/** The code of the refusal of a parameter that names nothing. */
export function missingCode({ shape }: z.ZodObject, name: string): ErrorCode {
  return CODES.get(shape[name]!)?.code ?? 'not_found'
}

/** A refusal of what a path names, with the parameter that names it as its field; any other as it is. */
export function namingParameter(params: z.ZodObject, refusal: unknown): unknown {
  if (!(refusal instanceof HttpError && refusal.status === 404) || refusal.field !== undefined) return refusal
  const field = Object.keys(params.shape).find((name) => missingCode(params, name) === refusal.code)
  return field === undefined
    ? refusal
    : new HttpError(404, refusal.error, refusal.message, { ...refusal, field })
}
