import { isRejection, type Rejection } from '../../../domain/kernel/rejection.ts'
import {
  type Checkout,
  type CheckoutSettings,
  checkoutSettings,
} from '../../../domain/payments/pages/checkout-settings.ts'
import { unknownTenant } from '../../access/tenants.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { within } from '../../commands/verbs.ts'

/** Sets how a tenant sells; what is as it was is no change. */
export async function setCheckout(
  app: Application,
  tenantId: string,
  settings: CheckoutSettings,
  context: CommandContext,
): Promise<Checkout | Rejection> {
  const unknown = await unknownTenant(app, tenantId)
  if (unknown) return unknown
  const outcome = await app.commands.execute(
    checkoutSettings,
    tenantId,
    { type: 'Set', tenantId, settings },
    within(context, { tenant_id: tenantId }),
  )
  return isRejection(outcome) ? outcome : outcome.state
}
