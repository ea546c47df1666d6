import type { LinkPage } from '../../application/payments/link-page.ts'
import { dollars } from '../../domain/kernel/money.ts'
import { type Html, html } from './page.ts'

const TITLES = {
  payable: 'Payment request',
  paid: 'Paid',
  cancelled: 'Cancelled',
  expired: 'Expired',
} as const
const SENTENCES = {
  payable: 'asks you to pay',
  paid: 'was paid. Thank you.',
  cancelled: 'has cancelled this payment request. Nothing can be paid by it.',
  expired: 'can no longer be paid by this link, as its time is over. Ask for a new one.',
} as const

/** The page of a payment link: what is asked for, by whom, and what became of it. */
export function linkPageHtml(
  link: LinkPage,
  ownAddress: string,
): { readonly title: string; readonly body: Html } {
  const { status, seller, description, installment_plan: plan } = link
  const row = (name: string, value: string) => html`<dt>${name}</dt><dd>${value}</dd>`
  const rows = [
    row('For', description),
    row('Amount', dollars(link.amount_cents)),
    ...(plan
      ? [row('Then monthly', dollars(plan.per_installment_cents)), row('In all', dollars(link.total_cents))]
      : []),
    ...(link.fee_cents > 0 ? [row('Fee included in all', dollars(link.fee_cents))] : []),
    ...(status === 'payable' ? [row('Until', link.expires_at.slice(0, 10))] : []),
  ]
  return {
    title: TITLES[status],
    body: html`
<p><strong>${seller}</strong> ${SENTENCES[status]}</p>
<dl>${rows}</dl>
${howToPay(link, ownAddress)}`,
  }
}

function howToPay(
  { status, environment, processor_url, after_completion_url }: LinkPage,
  ownAddress: string,
): Html | null {
  if (status === 'paid' && after_completion_url !== null) {
    return html`<p><a href="${after_completion_url}">Continue</a></p>`
  }
  if (status !== 'payable') return null
  if (processor_url !== null && processor_url !== ownAddress) {
    return html`<p><a href="${processor_url}">Pay by card</a></p>`
  }
  return environment === 'sandbox'
    ? html`<p class="note">This is a sandbox: no money moves. The link is paid by simulation.</p>`
    : html`<p class="note">The card processor of this service is simulated: no money moves.</p>`
}
