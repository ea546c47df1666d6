import { createHmac } from 'node:crypto'
import { newClient } from './intake.ts'
import { type Answer, type SeedableService, send } from './seed.ts'
import type { ReceivedRequest } from './webhook-receiver.ts'

/** A partner on the payments API, under one key pair. */
export interface Partner {
  readonly clientId: string
  readonly clientSecret: string
  /** Below `/api/v1`. */
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
}

/** The partner that a key pair makes. */
export function partnerOf(
  service: { readonly paymentsUrl: string },
  { clientId, clientSecret }: { readonly clientId: string; readonly clientSecret: string },
): Partner {
  return {
    clientId,
    clientSecret,
    call: (method, path, body, headers = {}) =>
      send(`${service.paymentsUrl}/api/v1${path}`, {
        method,
        headers: { 'X-Client-ID': clientId, 'X-Client-Secret': clientSecret, ...headers },
        ...(body === undefined ? {} : { body }),
      }),
  }
}

/** A further key pair of a tenant. @param settings for example its environment and scope. */
export async function newPartner(
  service: SeedableService & { readonly paymentsUrl: string },
  tenantId: string,
  settings: Record<string, unknown> = {},
): Promise<Partner> {
  return partnerOf(service, await newClient(service, tenantId, { environment: 'live', ...settings }))
}

/** Registers an address. @returns what is answered. @throws Error when it is refused. */
export async function registerWebhook(
  partner: Partner,
  url: string,
  events?: readonly string[],
): Promise<{ id: string; secret: string; events: string[] }> {
  const answer = await partner.call('POST', '/webhooks', { url, ...(events && { events }) })
  if (answer.status !== 201) throw new Error(`POST /webhooks: ${answer.status} ${answer.text}`)
  return answer.body.data
}

/** What the documented signature of a delivery must be. */
export function signatureOf({ headers, body }: ReceivedRequest, secret: string): string {
  return createHmac('sha256', secret).update(`${headers['x-webhook-timestamp']}.`).update(body).digest('hex')
}
