import type { FinancingPage } from '../../application/financing/financing-page.ts'
import { dollars } from '../../domain/kernel/money.ts'
import { type Html, html } from './page.ts'

const SENTENCES: Readonly<Record<FinancingPage['finance']['status'], string>> = {
  not_started: 'has not asked for financing quotes yet.',
  pending: 'is asking for financing quotes. Look again in a while.',
  quote_ready: 'offers you to finance this amount. None of the quotes is accepted or paid.',
  on_hold: 'has your financing request looked at. You need do nothing.',
  expired: 'can no longer finance this amount by this link, as its time is over. Ask for a new one.',
  payment_reported: 'was told that your down payment was received. The financing is yet to be confirmed.',
}

/** The page of a financing session: what would be financed, for whom, and how that stands. Nothing is paid on it. */
export function financingPageHtml(page: FinancingPage): { readonly title: string; readonly body: Html } {
  const { seller, line_items, amount_cents, description, finance, refusal } = page
  const row = (name: string, value: string) => html`<dt>${name}</dt><dd>${value}</dd>`
  const sentence =
    refusal === null
      ? SENTENCES[finance.status]
      : 'does not offer financing by this link any more. Nothing can be paid by it.'
  const rows = [
    ...(description === null ? [] : [row('For', description)]),
    ...line_items.map(({ label, amount_cents }) => row(label, dollars(amount_cents))),
    row('Total', dollars(amount_cents)),
    ...(finance.quote_count === undefined ? [] : [row('Quotes', String(finance.quote_count))]),
    ...(finance.status === 'quote_ready' ? [row('Until', finance.expires_at.slice(0, 10))] : []),
  ]
  return {
    title: 'Premium financing',
    body: html`
<p><strong>${seller.display_name ?? ''}</strong> ${sentence}</p>
<dl>${rows}</dl>
<p class="note">This is a test: nothing is financed.</p>
${seller.support_email === null ? null : html`<p>Questions: <a href="mailto:${seller.support_email}">${seller.support_email}</a></p>`}`,
  }
}
