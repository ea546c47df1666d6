import type { PayerPage } from '../../application/payments/sessions/payer-page.ts'
import { dollars } from '../../domain/kernel/money.ts'
import type { Fault } from '../endpoints/faults.ts'
import { bankOption, type Typed } from './bank-form.ts'
import { cardOption } from './card-form.ts'
import { calendarDay, day, moment } from './dates.ts'
import { type Html, html } from './html.ts'
import { facts, installments, items, note, progress, scheduleTable, state, stateHeader } from './pieces.ts'

/** What a page shows beside its session. */
export interface SessionView {
  /** Proves that a post comes from the page. */
  readonly proof: string
  /** What came of what the payer just did. */
  readonly notice: { readonly title: string; readonly text: string } | null
  readonly typed: Typed
  readonly faults: readonly Fault[]
}

/** The page of a session, in whatever state. */
export function sessionHtml(page: PayerPage, view: SessionView) {
  const { status, session } = page
  const isOpen = page.takes_debits
  const seen = `${status}/${page.debit?.progress ?? ''}/${session.payments.length}`
  const title = isOpen
    ? session.plan === null
      ? `Pay ${dollars(session.amount_cents)} to ${page.brand.name}`
      : `Payment plan with ${page.brand.name}`
    : `${stateOf(page).title}: ${page.brand.name}`
  return { title, state: seen, isWide: isOpen, body: isOpen ? openBody(page, view) : closedBody(page, view) }
}

function openBody(page: PayerPage, view: SessionView): Html {
  const { session } = page
  return html`<section class="stack" aria-labelledby="what">${page.session.plan === null ? asked(page) : offered(page)}
<p class="soft">Can be paid until ${moment(session.expires_at)}</p>
${described(session.description)}${itemised(page)}${laterOf(page) > 0 ? scheduleTable(page.installments, false) : null}</section>
<section class="card stack ways" aria-labelledby="how"><h2 id="how">${page.takes_cards ? 'How do you want to pay?' : 'Pay from a bank account'}</h2>
${page.is_test ? html`<p class="soft">This is a test: no money moves.</p>` : null}
${said(view)}${failed(page, view)}${ways(page, view)}</section>`
}

function asked({ session, brand }: PayerPage): Html {
  return html`<h1 class="ask" id="what"><span class="eyebrow">Pay <bdi>${brand.name}</bdi></span> <span class="amount">${dollars(session.amount_cents)}</span></h1>`
}

/** What the installments of a plan come to, in cents: 0 without a plan, and where the down payment is all of it. */
function laterOf({ session: { plan, amount_cents }, total_cents }: PayerPage): number {
  return plan === null ? 0 : total_cents - amount_cents
}

function offered(page: PayerPage): Html {
  const { session, brand } = page
  const {
    total_installments: count,
    per_installment_cents: each,
    last_installment_cents: last,
  } = session.plan!
  const rest =
    count === 1 || each === last
      ? html`${dollars(last)} each month`
      : html`${dollars(each)} each month, the last one ${dollars(last)}`
  return html`<h1 class="ask" id="what"><span class="eyebrow">Payment plan with <bdi>${brand.name}</bdi></span> <span class="amount">${dollars(session.amount_cents)}</span> due now</h1>
${laterOf(page) > 0 ? html`<p>Then ${installments(count)}: ${rest}.</p>` : null}`
}

function described(description: string | null): Html | null {
  return description === null ? null : html`<p class="text">${description}</p>`
}

function itemised(page: PayerPage): Html {
  const { session, total_cents } = page
  const total = { label: 'Total', amount_cents: total_cents }
  const { plan, amount_cents } = session
  if (plan === null) return items(session.line_items, [total])
  const later = laterOf(page)
  const label = `In ${installments(plan.total_installments, '')}`
  return items(session.line_items, [
    total,
    { label: page.takes_debits ? 'Due now' : 'Down payment', amount_cents },
    ...(later > 0 ? [{ label, amount_cents: later }] : []),
  ])
}

/** The result of what the payer just did, before all else. */
function said({ notice }: SessionView): Html | null {
  return notice && note('bad', notice.title, html`<span>${notice.text}</span>`, 'alert')
}

function failed({ last_failed_at }: PayerPage, { notice }: SessionView): Html | null {
  if (last_failed_at === null || notice) return null
  const text = html`<span>On ${moment(last_failed_at)}. Nothing was charged. Try again, use another card, or pay from a bank account.</span>`
  return note('bad', 'The last card payment was declined', text, 'alert')
}

function ways(page: PayerPage, { proof, typed, faults, notice }: SessionView): Html {
  const { session, brand, processor, takes_cards } = page
  const { amount_cents: amountCents, plan } = session
  const later = laterOf(page)
  const wasTried = page.last_failed_at !== null || notice !== null
  const card = takes_cards
    ? cardOption({
        processor,
        amountCents,
        proof,
        hasOther: page.takes_debits,
        // a script of others is loaded only when it is asked for
        isOpen: processor === 'simulated' && faults.length === 0 && wasTried,
      })
    : null
  const bank = page.takes_debits
    ? bankOption({
        sellerName: brand.name,
        amountCents,
        proof,
        typed,
        faults,
        isOnly: !takes_cards,
        plan: plan && later > 0 ? { count: plan.total_installments, cents: later } : null,
        isOpen: faults.length > 0,
      })
    : null
  return html`${card}${bank}`
}

function closedBody(page: PayerPage, view: SessionView): Html {
  const { session, status } = page
  const isDone = status === 'paid' || (status === 'scheduled' && session.plan === null)
  const isRunning = session.debit !== null
  return html`<div class="card stack">${stateHeader(stateOf(page), isDone ? session.amount_cents : null)}
${said(view)}${warned(page)}${known(page)}</div>
<section class="card stack" aria-label="What it is for">${described(session.description)}${itemised(page)}${laterOf(page) > 0 ? scheduleTable(page.installments, isRunning) : null}</section>
${page.takes_cards ? html`<section class="card ways" aria-labelledby="how"><h2 id="how">Pay again</h2><p class="soft">This link may be used more than once.</p>${ways(page, view)}</section>` : null}`
}

/** The title of a state, and what it means for the payer. */
function stateOf(page: PayerPage) {
  const { status, session, brand } = page
  const who = html`<bdi>${brand.name}</bdi>`
  switch (status) {
    case 'paid':
      return state('good', 'check', 'Paid', [html`Thank you. ${who} has received your payment.`])
    case 'scheduled':
      return scheduledState(page)
    case 'cancelled':
      return session.replaced_by === null
        ? state('calm', 'cross', 'Payment request cancelled', [
            html`${who} has cancelled this request. Nothing can be paid by it any more.`,
          ])
        : state('calm', 'again', 'Replaced by a newer request', [
            html`${who} has sent you a new link. Please use the one in the latest message.`,
          ])
    default:
      return state('warn', 'clock', 'This payment link has expired', [
        html`The link could be used until ${moment(session.expires_at)}. Ask ${who} for a new one.`,
      ])
  }
}

function scheduledState(page: PayerPage) {
  const { session, debit, brand } = page
  if (session.debit === null) {
    const why = html`Your bank is paying. That takes a few banking days, and there is nothing else to do.`
    return state('calm', 'clock', 'Payment processing', [why])
  }
  const last4 = session.debit.account.account_last4
  const isStopped = session.plan_stopped
  const rest = html`${isStopped ? ' No further installment is collected.' : null} Please contact <bdi>${brand.name}</bdi>.`
  if (debit?.progress === 'returned' || (isStopped && returnedOf(page) > 0)) {
    return state('bad', 'back', 'Returned by your bank', [
      html`Your bank returned the payment from the account ending in ${last4}.${rest}`,
    ])
  }
  if (debit?.progress === 'stopped') {
    return state('bad', 'cross', 'Payment not collected', [
      html`Nothing was taken from the account ending in ${last4}.${rest}`,
    ])
  }
  if (isStopped) {
    return state('calm', 'cross', 'Payment plan stopped', [
      html`The plan was paid from the account ending in ${last4}.${rest}`,
    ])
  }
  const account = html`from the bank account ending in ${last4}. There is nothing else to do.`
  if (session.plan !== null) {
    const { amount_cents, plan } = session
    const now = amount_cents === 0 ? null : html`${dollars(amount_cents)} as a down payment`
    const then = laterOf(page) > 0 ? html`${now && ' and '}${installments(plan.total_installments)}` : null
    const title = isPaidOff(page) ? 'Payment plan paid' : 'Payment plan scheduled'
    return state('good', 'check', title, [html`You authorized ${now}${then} ${account}`])
  }
  const title = DEBIT_TITLES[debit?.progress ?? 'arranged']
  return state('calm', 'clock', title, [html`You authorized it ${account}`])
}

const DEBIT_TITLES = {
  arranged: 'Payment scheduled',
  on_its_way: 'Payment processing',
  collected: 'Payment collected',
} as const

function isPaidOff({ debit, installments }: PayerPage): boolean {
  const isCollected = (one: { readonly progress: string } | null) =>
    (one?.progress ?? 'collected') === 'collected'
  return isCollected(debit) && installments.every((one) => one.amount_cents === 0 || isCollected(one))
}

/** How many installments came back. */
function returnedOf({ installments: all }: PayerPage): number {
  return all.filter((one) => one.progress === 'returned').length
}

/** What does not go as it should. */
function warned(page: PayerPage): Html | null {
  const { session, status, debit } = page
  const returned = returnedOf(page)
  if (returned > 0) {
    const text = html`<span>Your bank returned ${returned === 1 ? 'it' : 'them'}: see the schedule below.</span>`
    return note('bad', `${installments(returned, '')} returned`, text)
  }
  if (status === 'paid' && session.payments.length > 1 && session.single_use) {
    const text = html`<span>It was to be paid once. Please ask for the other payments back.</span>`
    return note('warn', `${session.payments.length} card payments were received`, text)
  }
  if (status === 'cancelled' && session.checkouts.some(({ isProcessing }) => isProcessing)) return goesAhead()
  // nothing is taken by it
  if (debit?.progress === 'stopped') return null
  if (session.debit === null || debit?.progress === 'returned') {
    if (status !== 'paid' || debit?.progress !== 'returned') return null
    return note(
      'bad',
      'A bank payment was returned',
      html`<span>Your bank returned the payment after it was made.</span>`,
    )
  }
  if (status === 'paid' && session.payments.length > 0) {
    const text = html`<span>A bank payment was authorized as well. Please ask for one of them back.</span>`
    return note('warn', 'Paid by card and from a bank account', text)
  }
  return status === 'cancelled' && session.debit.leg_id !== null ? goesAhead() : null
}

function goesAhead(): Html {
  const text = html`<span>It was authorized before the request was cancelled.</span>`
  return note('warn', 'A bank payment goes ahead', text)
}

function known({ session, debit, status }: PayerPage): Html {
  const arranged = session.debit
  const [byProcessor] = session.payments
  const account = arranged && html`Account ending in ${arranged.account.account_last4}`
  const method =
    status === 'paid' && byProcessor ? (byProcessor.isBankDebit ? html`Bank account` : html`Card`) : account
  return facts([
    ['Paid on', session.paid_at === null ? null : day(session.paid_at)],
    [status === 'paid' ? 'Paid by' : 'Bank account', method],
    ['Authorized on', arranged === null ? null : day(arranged.scheduled_at)],
    ['Debit', debit && progress(debit.progress)],
    [
      'Takes effect',
      debit?.effective_date && debit.progress !== 'returned' && debit.progress !== 'stopped'
        ? calendarDay(debit.effective_date)
        : null,
    ],
    ['Cancelled on', session.cancelled_at === null ? null : day(session.cancelled_at)],
    ['Reference', html`<code>${session.payment_session_id}</code>`],
  ])
}
