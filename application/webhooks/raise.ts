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
import { within } from '../commands/verbs.ts'
import { WrongExpectedRevision } from '../ports/event-log.ts'

/** What partners are told, and whose it is. */
export interface NewWebhookEvent<Type extends WebhookEventType> {
  readonly type: Type
  readonly of: {
    readonly tenant_id: string
    readonly environment: Environment
    readonly carrier_id: string | null
    readonly employer_id: string | null
  }
  readonly payload: WebhookPayload<Type>
}

/**
 * Raises an event for the webhooks of a tenant. A piece of work that comes again raises it once: its id derives from the
 * id of the command.
 * @returns the id of the event, `X-Webhook-ID`.
 */
export async function raiseWebhookEvent<Type extends WebhookEventType>(
  app: Pick<Application, 'commands'>,
  { type, of, payload }: NewWebhookEvent<Type>,
  context: CommandContext,
): Promise<string> {
  const event_id = createdId(context, webhookEvent)
  const { tenant_id, environment, carrier_id, employer_id } = of
  const data = {
    event_id,
    tenant_id,
    environment,
    event_type: type,
    carrier_id,
    employer_id,
    payload: WEBHOOK_EVENTS[type].parse(payload) as Record<string, unknown>,
  }
  try {
    orThrow(await app.commands.create(webhookEvent, event_id, { type: 'Raise', data }, within(context, of)))
  } catch (error) {
    // an earlier attempt has raised it: what is new costs no look for that
    if (!(error instanceof WrongExpectedRevision)) throw error
  }
  return event_id
}
