import type { FinancingPage } from '../../application/financing/financing-page.ts'
import { dollars } from '../../domain/kernel/money.ts'
import { day } from './dates.ts'
import { html } from './html.ts'
import type { Page } from './page.ts'
import { facts } from './pieces.ts'

const SENTENCES: Readonly<Record<FinancingPage['finance']['status'], string>> = {
  not_started: 'has not asked for financing quotes yet.',
  pending: 'is asking for financing quotes. Look again in a while.',
  quote_ready: 'offers you to finance this amount. None of the quotes is accepted or paid.',
  on_hold: 'has your financing request looked at. You need do nothing.',
  expired: 'can no longer finance this amount by this link, as its time is over. Ask for a new one.',
  payment_reported: 'was told that your down payment was received. The financing is yet to be confirmed.',
}

/** The page of a financing session: what would be financed, for whom, and how that stands. Nothing is paid on it. */
export function financingPageHtml(page: FinancingPage): Page {
  const { seller, line_items, amount_cents, description, finance, refusal } = page
  const { accent_color: accent, logo_url: logo, support_email: supportEmail } = seller
  const name = seller.display_name ?? ''
  const sentence =
    refusal === null
      ? SENTENCES[finance.status]
      : 'does not offer financing by this link any more. Nothing can be paid by it.'
  const rows = facts([
    ['For', description],
    ...line_items.map(({ label, amount_cents }) => [label, dollars(amount_cents)] as const),
    ['Total', dollars(amount_cents)],
    ['Quotes', finance.quote_count === undefined ? null : String(finance.quote_count)],
    ['Until', finance.status === 'quote_ready' ? day(finance.expires_at) : null],
  ])
  return {
    title: `Premium financing: ${name}`,
    brand: { name, accent, logo, supportEmail },
    isTest: true,
    body: html`<div class="card stack"><h1>Premium financing</h1>
<p><strong><bdi>${name}</bdi></strong> ${sentence}</p>
${rows}<p class="note warn">This is a test: nothing is financed.</p></div>`,
  }
}
