import type { Environment } from '../../../domain/kernel/ids.ts'
import { orThrow } from '../../../domain/kernel/rejection.ts'
import { processorCustomer } from '../../../domain/payments/processor/processor-customer.ts'
import type { ProcessorKind } from '../../../domain/payments/processor/processor-kinds.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'

/** The employer's customer at a card processor, null when it has none there. */
export async function customerOf(
  { commands }: Pick<Application, 'commands'>,
  employerId: string,
  processor: ProcessorKind,
): Promise<string | null> {
  const { state } = await commands.load(processorCustomer, employerId)
  return state[processor]?.customer_id ?? null
}

/**
 * The employer's customer at the card processor in use, created by the first request for it. The key of the call derives from
 * the employer: concurrent requests, and a repetition after a crash, get the same customer.
 * @throws ProviderUnavailable, ProviderRefused.
 */
export async function ensureCustomer(
  app: Pick<Application, 'commands' | 'processors'>,
  employer: {
    readonly employerId: string
    readonly tenantId: string
    readonly environment: Environment
    readonly name: string
    readonly email: string
  },
  context: CommandContext,
): Promise<string> {
  const { employerId, tenantId, environment, name, email } = employer
  const processor = app.processors[environment]
  const known = await customerOf(app, employerId, processor.kind)
  if (known !== null) return known
  const { customerId } = await processor.createCustomer({ employerId, name, email }, `customer-${employerId}`)
  const data = {
    employer_id: employerId,
    tenant_id: tenantId,
    environment,
    processor: processor.kind,
    customer_id: customerId,
  }
  const outcome = orThrow(
    await app.commands.execute(
      processorCustomer,
      employerId,
      { type: 'Record', data },
      { ...context, tenantId, environment },
    ),
  )
  return outcome.state[processor.kind]!.customer_id
}
