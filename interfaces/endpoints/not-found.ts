import { type ErrorCode, HttpError } from '../http/errors.ts'

/** The code of the refusal of what is not there. */
export const NOT_FOUND_CODES = {
  'ACH account': 'ach_account_not_found',
  alert: 'alert_not_found',
  'API client': 'client_not_found',
  'bank account': 'bank_account_not_found',
  'bank connection': 'bank_connection_not_found',
  'bank debit': 'debit_not_found',
  'bank file': 'bank_file_not_found',
  'bank report': 'bank_report_not_found',
  'bank transaction': 'bank_transaction_not_found',
  carrier: 'carrier_not_found',
  employer: 'employer_not_found',
  'financing checkout': 'financing_session_not_found',
  'financing session': 'financing_session_not_found',
  'inbound connection': 'connection_not_found',
  'payment link': 'payment_link_not_found',
  'payment link, payment session or subscription': 'payment_link_not_found',
  'payment session': 'payment_session_not_found',
  'payroll company': 'payroll_company_not_found',
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
