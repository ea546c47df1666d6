/** APIs that have a description. */
export type DescribedApi = 'core' | 'operator' | 'payments'

const apis = new Map<string, DescribedApi>()

/**
 * Notes which APIs the hosts of a started service have; ports are used again, by other hosts too.
 * @param isThisBuild false: a build of its own, with descriptions of its own.
 */
export function describeHosts(hosts: Hosts, isThisBuild = true): void {
  const { mcpUrl, coreUrl, paymentsUrl, portalUrl, opsUrl } = hosts
  for (const address of [mcpUrl, coreUrl, paymentsUrl, portalUrl, opsUrl]) apis.delete(address)
  if (!isThisBuild) return
  apis.set(coreUrl, 'core')
  apis.set(opsUrl, 'operator')
  apis.set(paymentsUrl, 'payments')
}

type Hosts = Readonly<Record<'mcpUrl' | 'coreUrl' | 'paymentsUrl' | 'portalUrl' | 'opsUrl', string>>

/** The API at an address, null where none is described. */
export function apiAt(origin: string): DescribedApi | null {
  return apis.get(origin) ?? null
}
