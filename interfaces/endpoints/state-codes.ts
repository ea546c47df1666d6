/** Codes of refusals by the present state, where any state but the wanted ones refuses. */

export const DEBIT_STATES = [
  ...(['debit_cancelled', 'debit_failed', 'debit_legacy_collected', 'debit_pending'] as const),
  ...(['debit_processed', 'debit_quarantined', 'debit_returned', 'debit_scheduled'] as const),
  'debit_submitted',
] as const

/** Codes with which a new debit is refused, by its account or its key. */
export const DEBIT_REFUSED = [
  'account_disabled',
  'account_unlisted',
  'collection_refused',
  'debit_key_reused',
] as const

export const LINK_STATES = [
  ...(['payment_link_cancelled', 'payment_link_created', 'payment_link_expired'] as const),
  ...(['payment_link_paid', 'payment_link_sent'] as const),
] as const

export const BANK_FILE_STATES = [
  ...(['bank_file_begun', 'bank_file_exposed', 'bank_file_fetched', 'bank_file_recorded'] as const),
  ...(['bank_file_repeating', 'bank_file_sent', 'bank_file_uncertain'] as const),
] as const

export const LEGACY_STATES = [
  ...(['legacy_collection_at_sb', 'legacy_collection_canceled', 'legacy_collection_failed'] as const),
  ...(['legacy_collection_file_transmitted', 'legacy_collection_legacy_collected'] as const),
  ...(['legacy_collection_pending', 'legacy_collection_returned', 'legacy_collection_sb_remit'] as const),
] as const
