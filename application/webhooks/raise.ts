import type { Environment } from '../../domain/kernel/ids.ts'
import { orThrow } from '../../domain/kernel/rejection.ts'
import {
  WEBHOOK_EVENTS,
  type WebhookEventType,
  type WebhookPayload,
} from '../../domain/webhooks/event-types.ts'
import { webhookEvent } from '../../domain/webhooks/webhook-event.ts'
import type { Application } from '../commands/application.ts'
import { type CommandContext, createdId } from '../commands/command-context.ts'
import { WrongExpectedRevision } from '../ports/event-log.ts'

/** What partners are told, and whose it is. */
export interface NewWebhookEvent<Type extends WebhookEventType> {
  readonly type: Type
  readonly tenantId: string
  readonly environment: Environment
  readonly carrierId: string | null
  readonly employerId: string | null
  readonly payload: WebhookPayload<Type>
}

/**
 * Raises an event for the webhooks of a tenant. A piece of work that comes again raises it once: its id derives from the
 * id of the command.
 * @returns the id of the event, `X-Webhook-ID`.
 */
export async function raiseWebhookEvent<Type extends WebhookEventType>(
  app: Pick<Application, 'commands'>,
  { type, tenantId, environment, carrierId, employerId, payload }: NewWebhookEvent<Type>,
  context: CommandContext,
): Promise<string> {
  const event_id = createdId(context, webhookEvent)
  const data = {
    event_id,
    tenant_id: tenantId,
    environment,
    event_type: type,
    carrier_id: carrierId,
    employer_id: employerId,
    payload: WEBHOOK_EVENTS[type].parse(payload) as Record<string, unknown>,
  }
  const owned = { ...context, tenantId, environment }
  try {
    orThrow(await app.commands.create(webhookEvent, event_id, { type: 'Raise', data }, owned))
  } catch (error) {
    // an earlier attempt has raised it: what is new costs no look for that
    if (!(error instanceof WrongExpectedRevision)) throw error
  }
  return event_id
}
