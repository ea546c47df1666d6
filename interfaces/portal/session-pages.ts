import type { Response } from 'express'
import type { Application } from '../../application/commands/application.ts'
import { arrangeDebit } from '../../application/payments/sessions/arrange-debit.ts'
import { checkoutOf } from '../../application/payments/sessions/checkouts.ts'
import {
  type Brand,
  brandOf,
  type PayerPage,
  payerPage,
} from '../../application/payments/sessions/payer-page.ts'
import { contextOfPayer, lookedAt } from '../../application/payments/sessions/session-page.ts'
import { type Simulated, simulateSession } from '../../application/payments/simulate-payment.ts'
import { ProviderRefused, ProviderUnavailable } from '../../application/ports/provider.ts'
import { isRejection, type Rejection } from '../../domain/kernel/rejection.ts'
import { paymentSession } from '../../domain/payments/sessions/payment-session.ts'
import type { PaymentSession } from '../../domain/payments/sessions/payment-session-status.ts'
import { check } from '../endpoints/faults.ts'
import { payersAccount, payersAccountRequest } from '../endpoints/payers-account.ts'
import { whileOutside } from '../http/admission.ts'
import { requestIdOf, sendJson } from '../http/answers.ts'
import { HttpError } from '../http/errors.ts'
import { isTestCard } from './card-form.ts'
import { SHOWN_SCRIPT } from './compstream-script.ts'
import { readForm, requireOwnPage } from './own-posts.ts'
import { type Policy, writePage } from './page.ts'
import { payerScript } from './payer-script.ts'
import { type SessionView, sessionHtml } from './session-page.ts'
import { STRIPE, STRIPE_SCRIPT } from './stripe.ts'

const NOTHING: Omit<SessionView, 'proof'> = { notice: null, typed: {}, faults: [] }
const SCRIPTS = { simulated: payerScript(null), stripe: payerScript(STRIPE_SCRIPT) } as const
const NOT_THIS_PAGE = 'This form was not sent by the payment page. Open the payment link and try again.'
const NOWHERE = 'There is no payment page at this address. Check that the link is complete.'

export function nowhere(): HttpError {
  return new HttpError(404, null, NOWHERE)
}

/** Shows the page of a session. @throws HttpError 404. */
export async function showSessionPage(
  app: Application,
  found: PaymentSession,
  brand: Brand,
  response: Response,
): Promise<void> {
  // a HEAD request is no look
  const isLook = response.req.method !== 'HEAD'
  const session = isLook ? await lookedAt(app, found, contextOfPayer(app, requestIdOf(response))) : found
  if (isRejection(session)) throw nowhere()
  writeSessionPage(app, response, 200, await payerPage(app, session, brand))
}

/**
 * Does what a form of the page of a session asks for, and leads back to the page, which shows what came of it.
 * @param ownUrl see {@link requireOwnPage}.
 * @throws HttpError 403, 413, 415.
 */
export async function takeSessionPost(
  app: Application,
  found: PaymentSession,
  response: Response,
  ownUrl: string,
): Promise<void> {
  requireOwnPage(response.req, ownUrl)
  const fields = await readForm(response.req)
  if (fields.proof !== proofOf(app, found)) throw new HttpError(403, null, NOT_THIS_PAGE)
  await takeOption(app, found, fields, response)
}

/** Does what a form asks for that was sent by the page of a session. @throws HttpError 400. */
export async function takeOption(
  app: Application,
  found: PaymentSession,
  fields: Fields,
  response: Response,
): Promise<void> {
  switch (fields.option) {
    case 'bank':
      return payFromBank(app, found, fields, response)
    case 'card':
      return payByTestCard(app, found, fields.card, response)
    case 'checkout':
      return beginCheckout(app, found, response)
    default:
      throw new HttpError(400, null, 'Choose how to pay.')
  }
}

type Fields = Readonly<Record<string, string>>

async function payFromBank(
  app: Application,
  session: PaymentSession,
  fields: Fields,
  response: Response,
): Promise<void> {
  const { account_number = '', routing_number = '', authorized, ...others } = fields
  const checked = check(payersAccountRequest, {
    ...others,
    bank_name: others.bank_name?.trim() || null,
    routing_number: withoutGaps(routing_number),
    account_number: withoutGaps(account_number),
    authorized: authorized === 'true',
  })
  const page = await payerPage(app, session, await brandOf(app, session.tenant_id))
  if ('faults' in checked) {
    const typed = { ...others, routing_number }
    if (page.takes_debits) writeSessionPage(app, response, 400, page, { faults: checked.faults, typed })
    else leadBack(response)
    return
  }
  await answering(app, session, response, () =>
    arrangeDebit(app, session, payersAccount(checked.value), contextOfPayer(app, requestIdOf(response))),
  )
}

/** People copy numbers with gaps. */
function withoutGaps(text: string): string {
  return text.replace(/[\s-]/g, '')
}

async function payByTestCard(
  app: Application,
  session: PaymentSession,
  card: string | undefined,
  response: Response,
): Promise<void> {
  if (!isTestCard(card)) throw new HttpError(400, null, 'Choose a test card.')
  await answering(app, session, response, async () => {
    if (card === 'times_out') throw new ProviderUnavailable('The card processor did not answer in time')
    const failureCode = card === 'declines' ? 'card_declined' : null
    return simulateSession(app, session, failureCode, contextOfPayer(app, requestIdOf(response)))
  })
}

/** Answers the page's script with what mounts the processor's form. */
async function beginCheckout(app: Application, session: PaymentSession, response: Response): Promise<void> {
  const context = contextOfPayer(app, requestIdOf(response))
  const begun = await whileOutside(response.req, () => checkoutOf(app, session, context)).catch(awayOf)
  if (begun === null) sendJson(response, 502, { message: AWAY.text })
  else if (isRejection(begun)) sendJson(response, 409, { message: begun.message })
  else sendJson(response, 200, begun)
}

const AWAY = {
  title: 'The card processor did not answer',
  text: 'We do not know of any payment. Look at this page again in a minute before you try again.',
} as const
const MEANWHILE = {
  title: 'That did not go through',
  text: 'Something else was going on with this payment at the same time. Please try again.',
} as const

/** Does what was asked for; where it cannot be done the page shows the truth, which the payer may not have seen yet. */
async function answering(
  app: Application,
  session: PaymentSession,
  response: Response,
  act: () => Promise<PaymentSession | Simulated | Rejection>,
): Promise<void> {
  const outcome = await whileOutside(response.req, act).catch(awayOf)
  if (outcome !== null && !(isRejection(outcome) && outcome.code === 'checkout_open')) {
    leadBack(response)
    return
  }
  const { state } = await app.commands.load(paymentSession, session.payment_session_id)
  const page = await payerPage(app, state ?? session, await brandOf(app, session.tenant_id))
  const notice = outcome === null ? AWAY : MEANWHILE
  writeSessionPage(app, response, outcome === null ? 502 : 409, page, { notice })
}

function awayOf(error: unknown): null {
  if (error instanceof ProviderUnavailable || error instanceof ProviderRefused) return null
  throw error
}

/** To the same address, whatever stands before it: a form that was sent is not sent again by a reload. */
function leadBack(response: Response): void {
  const { pathname, search } = new URL(response.req.originalUrl, 'http://page')
  response.statusCode = 303
  response.setHeader('Location', `./${pathname.slice(pathname.lastIndexOf('/') + 1)}${search}`)
  response.setHeader('Referrer-Policy', 'no-referrer')
  response.setHeader('Content-Length', 0)
  response.end()
}

/** Shows a session. In a frame, where `response.locals.isEmbedded` says so, it tells the page around it how it stands. */
export function writeSessionPage(
  app: Application,
  response: Response,
  status: number,
  page: PayerPage,
  view: Partial<SessionView> = {},
): void {
  const { brand, processor, takes_cards, is_test, session } = page
  const proof = proofOf(app, session)
  const shown = sessionHtml(page, { ...NOTHING, ...view, proof })
  const policy: Partial<Policy> = {
    ...(takes_cards && processor === 'stripe' ? STRIPE : {}),
    takesForms: takes_cards || page.takes_debits,
    ancestors: brand.embedOrigins,
  }
  const isEmbedded = response.locals.isEmbedded === true
  const script = SCRIPTS[takes_cards ? processor : 'simulated']
  const data = {
    session: session.payment_session_id,
    origins: brand.embedOrigins.join(' '),
    status: page.status,
    proof,
  }
  writePage(response, status, {
    ...shown,
    brand,
    ...(isEmbedded ? { script: `${script}${SHOWN_SCRIPT}`, data } : { script }),
    isTest: is_test,
    policy,
  })
}

/** Stands in the forms of a session's page, and nowhere else. */
export function proofOf(
  { personalData }: Pick<Application, 'personalData'>,
  { payment_session_id }: Pick<PaymentSession, 'payment_session_id'>,
): string {
  return personalData.fingerprint('payment_page_form', payment_session_id)
}
