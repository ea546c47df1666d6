import type { FinancingPage } from '../../application/payments/financing/financing-page.ts'
import { moment } from './dates.ts'
import { type Html, html } from './html.ts'
import type { Page } from './page.ts'
import { items, note, state, stateHeader } from './pieces.ts'

/** The page of a financing session: amount, insured, and status. Nothing is paid on it. */
export function financingPageHtml(page: FinancingPage): Page {
  const { seller, line_items, amount_cents, description, finance } = page
  const { accent_color: accent, logo_url: logo, support_email: supportEmail } = seller
  const name = seller.display_name ?? ''
  const { sentences, ...shown } = stateOf(page, html`<bdi>${name}</bdi>`)
  const isOpen = finance.status === 'quote_ready' && page.refusal === null
  const until = isOpen ? [html`Open until ${moment(finance.expires_at)}.`] : []
  const test = note(
    'warn',
    'Only a test',
    html`<span>Nothing is financed, and nothing can be paid here.</span>`,
  )
  return {
    title: `${shown.title}: ${name}`,
    brand: { name, accent, logo, supportEmail },
    isTest: true,
    body: html`<div class="card stack">${stateHeader({ ...shown, sentences: [...sentences, ...until] }, null)}
${test}</div>
<section class="card stack" aria-label="What it is for">${description === null ? null : html`<p class="text">${description}</p>`}
${items(line_items, [{ label: 'Total', amount_cents }])}</section>`,
  }
}

/** How it stands, and what that means for the insured. */
function stateOf({ finance, refusal }: FinancingPage, who: Html) {
  if (refusal !== null) {
    return state('calm', 'cross', 'Financing closed', [
      html`${who} does not offer financing by this link any more.`,
    ])
  }
  switch (finance.status) {
    case 'not_started':
    case 'pending':
      return state('calm', 'clock', 'Quotes are on their way', [
        html`${who} has asked for financing quotes. Look at this page again in a while.`,
      ])
    case 'quote_ready': {
      const count = finance.quote_count === 1 ? 'One quote is' : `${finance.quote_count} quotes are`
      return state('good', 'check', 'Quotes are ready', [
        html`${count} ready. ${who} will go through them with you; none is accepted yet.`,
      ])
    }
    case 'on_hold':
      return state('warn', 'clock', 'Under review', [
        html`The financing request is being looked at. You need do nothing.`,
      ])
    case 'expired':
      return state('calm', 'clock', 'Quotes have expired', [
        html`This link can no longer be used. Ask ${who} for a new one.`,
      ])
    case 'payment_reported':
      return state('good', 'check', 'Down payment reported', [
        html`The provider reported your down payment. The financing is yet to be confirmed.`,
      ])
  }
}
