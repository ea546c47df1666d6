import { BANK_ACCOUNT, newSession, tokenOf } from './payment-sessions.ts'
import { partner, webhookEvents } from './payments.ts'
import { type Answer, type SeededTenant, send } from './seed.ts'
import type { ServiceAddresses } from './service.ts'

type Json = ReturnType<typeof JSON.parse>

/** A payment session with who sold it and who pays it. */
export class SoldSession {
  readonly id: string
  readonly #token: string | null
  /** Of an embedded one: what its checkout is mounted by. */
  readonly clientSecret: string | null
  readonly #service: ServiceAddresses
  readonly #tenant: SeededTenant

  constructor(service: ServiceAddresses, tenant: SeededTenant, created: Json) {
    this.id = created.id
    this.#token = created.url ? tokenOf(created) : null
    this.clientSecret = created.client_secret ?? null
    this.#service = service
    this.#tenant = tenant
  }

  static async sell(
    service: ServiceAddresses,
    tenant: SeededTenant,
    overrides: Readonly<Record<string, unknown>> = {},
  ): Promise<SoldSession> {
    return new SoldSession(service, tenant, await newSession(service, tenant, overrides))
  }

  // ---- the payer

  checkout(): Promise<Answer> {
    return this.#pay('/checkout', {})
  }

  /** What mounts the checkout, which is answered. */
  async secret(): Promise<string> {
    const { status, body, text } = await this.checkout()
    if (status !== 200) throw new Error(text)
    return body.data.client_secret
  }

  payFromBank(): Promise<Answer> {
    return this.#pay('/bank-debit', BANK_ACCOUNT)
  }

  async page(): Promise<Json> {
    return (await send(`${this.#service.paymentsUrl}/public/payment-sessions/${this.#token}`)).body.data
  }

  /** The hosted page, as text. */
  async hostedPage(): Promise<string> {
    return (await fetch(`${this.#service.portalUrl}/pay/${this.#token}`)).text()
  }

  #pay(path: string, body: unknown): Promise<Answer> {
    const url = `${this.#service.paymentsUrl}/public/payment-sessions/${this.#token}${path}`
    return send(url, { method: 'POST', body })
  }

  // ---- the partner

  cancel(): Promise<Answer> {
    return this.#ask('DELETE', '')
  }

  reissue(): Promise<Answer> {
    return this.#ask('POST', '/reissue', {})
  }

  /** Another session in its place, which is answered. */
  async replaced(): Promise<SoldSession> {
    const { status, body, text } = await this.reissue()
    if (status !== 201) throw new Error(text)
    return new SoldSession(this.#service, this.#tenant, body.data)
  }

  async shown(): Promise<Json> {
    return (await this.#ask('GET', '')).body.data
  }

  async status(): Promise<string> {
    return (await this.shown()).status
  }

  /** What partners heard of it, oldest first. */
  async told(): Promise<readonly (readonly [string, Json])[]> {
    const all = await webhookEvents(this.#service, this.#tenant.tenantId)
    return all.filter(([, payload]) => payload.payment_session_id === this.id)
  }

  #ask(method: string, path: string, body?: unknown): Promise<Answer> {
    const { clientHeaders } = this.#tenant
    return partner(this.#service, clientHeaders, method, `/payment-sessions/${this.id}${path}`, body)
  }
}
