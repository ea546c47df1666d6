import {
  operate,
  type SeedableService,
  type SeededTenant,
  seedEmployer,
  seedPolicy,
  seedTenant,
} from '../support/seed.ts'
import type { SeededRandom } from '../support/seeded-random.ts'
import type { BookCarrier } from './debit-book.ts'
import type { DebitOrders } from './debit-orders.ts'

const EMPLOYERS = { first: 10, second: 3 }
/** One of them has mistyped the numbers of its account. */
const MISTYPED = 9

export interface DebitParties {
  readonly tenants: readonly SeededTenant[]
  readonly carriers: readonly BookCarrier[]
}

/** Seeds two tenants, a third one in the sandbox, with carriers that settle in each way and employers with accounts. */
export async function seedParties(
  service: SeedableService,
  orders: DebitOrders,
  random: SeededRandom,
): Promise<DebitParties> {
  const first = await seedTenant(service, { carrier: { settlement_type: 'fbo' } })
  const second = await seedTenant(service)
  const sandbox = await seedTenant(service, { environment: 'sandbox' })
  const { carrier_id } = await operate(service, 'POST', '/carriers', {
    tenant_id: first.tenantId,
    name: 'Other Mutual',
    settlement_type: 'direct',
  })
  const fbo = { id: first.carrierId, settlement: 'fbo' } as const
  const direct = { id: carrier_id, settlement: 'direct' } as const
  const [silent, sandboxed] = [second, sandbox].map(({ carrierId }) => ({ id: carrierId, settlement: null }))

  let serial = 0
  const insure = async (
    tenant: SeededTenant,
    of: readonly BookCarrier[],
    environment: 'live' | 'sandbox' = 'live',
  ) => {
    const name = `Basin Works ${serial} LLC`
    const isWritable = serial !== MISTYPED
    serial += 1
    const owner = { tenantId: tenant.tenantId, environment }
    const { employerId: id, fein } = await seedEmployer(service, owner, { legal_name: name })
    const policies = []
    for (let left = random.between(2, 3); left > 0; left -= 1) {
      const carrier = random.pick(of)
      const seeded = await seedPolicy(service, { employerId: id, carrierId: carrier.id })
      const { policyId, policyNumber: number } = seeded
      policies.push({ id: policyId, number, carrier, isCancelled: false, isBilledDirectly: false })
    }
    const usualCents = 100 * random.between(150, 4_000)
    const employer = { id, name, fein, tenant, environment, policies, accounts: [], usualCents }
    orders.employers.push(employer)
    const account = await orders.openAccount(employer, isWritable)
    if (!isWritable) return
    await operate(service, 'POST', `/ach-accounts/${account.id}/attest`, { note: 'Voided cheque' })
    account.isActive = true
  }
  for (let n = 0; n < EMPLOYERS.first; n += 1) await insure(first, [fbo, direct])
  for (let n = 0; n < EMPLOYERS.second; n += 1) await insure(second, [silent!])
  await insure(sandbox, [sandboxed!], 'sandbox')
  return { tenants: [first, second, sandbox], carriers: [fbo, direct, silent!, sandboxed!] }
}
