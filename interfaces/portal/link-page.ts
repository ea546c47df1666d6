import type { LinkPage } from '../../application/payments/links/link-page.ts'
import { dollars } from '../../domain/kernel/money.ts'
import { day } from './dates.ts'
import { type Html, html } from './html.ts'
import type { Page } from './page.ts'
import { facts } from './pieces.ts'

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

/** The page of a payment link: amount, payee, and status. */
export function linkPageHtml(link: LinkPage, ownAddress: string): Page {
  const { status, seller, description, installment_plan: plan, accent_color: accent, support_email } = link
  const rows = facts([
    ['For', description],
    ['Amount', dollars(link.amount_cents)],
    ['Then monthly', plan && dollars(plan.per_installment_cents)],
    ['In all', plan && dollars(link.total_cents)],
    ['Fee included in all', link.fee_cents > 0 ? dollars(link.fee_cents) : null],
    ['Until', status === 'payable' ? day(link.expires_at) : null],
  ])
  return {
    title: `${TITLES[status]}: ${seller}`,
    brand: { name: seller, accent, logo: link.logo_path, supportEmail: support_email },
    body: html`<div class="card stack"><h1>${TITLES[status]}</h1>
<p><strong><bdi>${seller}</bdi></strong> ${SENTENCES[status]}</p>
${rows}${howToPay(link, ownAddress)}</div>`,
  }
}

function howToPay(
  { status, environment, processor_url, after_completion_url }: LinkPage,
  ownAddress: string,
): Html | null {
  if (status === 'paid' && after_completion_url !== null) {
    return html`<p><a class="button" href="${after_completion_url}">Continue</a></p>`
  }
  if (status !== 'payable') return null
  if (processor_url !== null && processor_url !== ownAddress) {
    return html`<p><a class="button" href="${processor_url}">Pay by card</a></p>`
  }
  return environment === 'sandbox'
    ? html`<p class="note warn">This is a sandbox: no money moves. The link is paid by simulation.</p>`
    : html`<p class="note warn">The card processor of this service is simulated: no money moves.</p>`
}
