/** Metadata as they are kept: two names are the service's own. */
export function withOwnPairs(
  pairs: Readonly<Record<string, string>>,
  tenantId: string,
): Record<string, string> {
  return { ...pairs, api_client_id: tenantId, source: 'payment_api' }
}
