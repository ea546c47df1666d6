import { request } from 'node:http'
import { newSession, tokenOf } from './payment-sessions.ts'
import { partner } from './payments.ts'
import { type Answer, operate, type SeedableService, type SeededTenant, send } from './seed.ts'

/** What a payer types into the form of the bank option. */
export const TYPED = {
  account_holder_name: 'Tidewater Joinery LLC',
  routing_number: '021000021',
  account_number: '000123456789',
  account_type: 'checking',
  bank_name: '',
  authorized: 'true',
}

/** The hidden fields of the form of an option, as a browser without scripts would send them. */
export function hiddenFields(html: string, option: string): Record<string, string> {
  const form = html.split('<form').find((part) => part.includes(`name="option" value="${option}"`)) ?? ''
  const hidden = [...form.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)">/g)]
  return Object.fromEntries(hidden.map(([, name, value]) => [name!, value!]))
}

/** Sends a form as a browser does. Redirects are not followed. */
export async function postForm(
  url: string,
  fields: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const answer = await fetch(url, {
    method: 'POST',
    redirect: 'manual',
    headers: { 'Content-Type': 'application/x-www-form-urlencoded', ...headers },
    body: new URLSearchParams(fields).toString(),
  })
  return { status: answer.status, headers: answer.headers, text: await answer.text(), body: undefined }
}

/** Fills in the form of an option of a page, and sends it. */
export async function submit(
  url: string,
  option: 'bank' | 'card',
  fields: Readonly<Record<string, string>>,
): Promise<Answer> {
  const { text } = await send(url)
  return postForm(url, { ...hiddenFields(text, option), ...fields })
}

/**
 * Asks the host of hosted pages as somebody does who knows it under another host.
 * @param target a path, or a whole address.
 * @param form is posted.
 */
export function askUnder(
  portalUrl: string,
  host: string,
  target: string,
  form?: string,
): Promise<{ readonly status: number; readonly text: string; readonly location: string | undefined }> {
  return new Promise((resolve, reject) => {
    const headers = { Host: host, ...(form && { 'Content-Type': 'application/x-www-form-urlencoded' }) }
    const method = form === undefined ? 'GET' : 'POST'
    const asked = request(portalUrl, { method, headers, path: target }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () =>
        resolve({
          status: response.statusCode!,
          text: Buffer.concat(chunks).toString(),
          location: response.headers.location,
        }),
      )
    })
    asked.on('error', reject)
    asked.end(form)
  })
}

type Service = SeedableService & { readonly paymentsUrl: string }

/** A session in each state that a page shows, by the name of the state. @returns addresses of pages. */
export async function sessionsInAllStates(
  service: Service,
  tenant: SeededTenant,
): Promise<Readonly<Record<string, string>>> {
  const session = (more: Readonly<Record<string, unknown>> = {}) =>
    newSession(service, tenant, {
      amount_cents: 10_500,
      fee_cents: 500,
      description: 'Workers’ compensation premium 2026',
      fee_breakdown: [{ label: 'Filing fee', amount_cents: 500 }],
      ...more,
    })
  const plan = { total_installments: 10, down_payment_percent: 20 }
  const all = {
    open: await session(),
    failed: await session(),
    paid: await session(),
    'paid, may be paid again': await session({ single_use: false }),
    scheduled: await session(),
    processing: await session(),
    returned: await session(),
    plan: await session(plan),
    'plan without down payment': await session({ total_installments: 3 }),
    'plan scheduled': await session(plan),
    cancelled: await session(),
    'cancelled, debit goes ahead': await session(),
    replaced: await session(),
    expired: await session({ ttl_minutes: 15 }),
  }
  const simulate = (of: { id: string }, verb: string) =>
    operate(service, 'POST', `/card-processor/${of.id}/${verb}`, {})
  const arrange = async (of: { url: string }) => {
    const url = `${service.paymentsUrl}/public/payment-sessions/${tokenOf(of)}/bank-debit`
    const { body } = await send(url, {
      method: 'POST',
      body: { ...TYPED, bank_name: null, authorized: true },
    })
    return body.data.leg_id as string
  }
  const ask = (method: string, of: { id: string }, path = '', body?: unknown) =>
    partner(service, tenant.clientHeaders, method, `/payment-sessions/${of.id}${path}`, body)
  await simulate(all.failed, 'decline')
  await simulate(all.paid, 'succeed')
  await simulate(all['paid, may be paid again'], 'succeed')
  await ask('DELETE', all.cancelled)
  await ask('POST', all.replaced, '/reissue', {})
  await operate(service, 'POST', '/clock/advance', { seconds: 16 * 60 })
  const debitIds = [await arrange(all.processing), await arrange(all.returned)]
  await operate(service, 'POST', '/debit-batches', {})
  for (const debitId of debitIds) await operate(service, 'POST', `/bank-rail/${debitId}/acknowledge`, {})
  await operate(service, 'POST', `/bank-rail/${debitIds[1]}/return`, { return_code: 'R01' })
  for (const one of [all.scheduled, all['plan scheduled'], all['cancelled, debit goes ahead']])
    await arrange(one)
  await ask('DELETE', all['cancelled, debit goes ahead'])
  await operate(service, 'POST', '/drain')
  return Object.fromEntries(Object.entries(all).map(([name, { url }]) => [name, url as string]))
}
