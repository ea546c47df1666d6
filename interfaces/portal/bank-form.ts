import { dollars } from '../../domain/kernel/money.ts'
import type { Fault } from '../endpoints/faults.ts'
import { Html, html } from './html.ts'
import { icon, installments, note } from './pieces.ts'

/** What is wrong with a field, as a payer reads it. */
const WORDS: Readonly<Record<string, string>> = {
  account_holder_name: 'Enter the name on the account',
  routing_number: 'Enter the routing number: 9 digits, as on a check. This one is not valid',
  account_number: 'Enter the account number: 5 to 17 digits',
  account_type: 'Choose checking or savings',
  bank_name: 'Enter a shorter name of the bank',
  authorized: 'Tick the box to authorize the payment',
}

/** What a payer typed before, by field; the account's number is never sent back. */
export type Typed = Readonly<Record<string, string>>

interface BankOption {
  readonly sellerName: string
  readonly amountCents: number
  /** Sums of the installments that follow; null: none. */
  readonly plan: { readonly count: number; readonly cents: number } | null
  readonly proof: string
  readonly typed: Typed
  readonly faults: readonly Fault[]
  /** Stands alone, not as one of several options. */
  readonly isOnly: boolean
  readonly isOpen: boolean
}

/** The option to pay from a bank account. */
export function bankOption(option: BankOption): Html {
  if (option.isOnly) return html`<div id="bank">${form(option)}</div>`
  return html`<details class="way" name="way" id="bank"${option.isOpen ? new Html(' open') : null}>
<summary>${icon('bank')}<span>Bank account<small>Debited by ACH, takes a few banking days</small></span>${icon('turn', 'turn')}</summary>
<div>${form(option)}</div></details>`
}

function form(option: BankOption): Html {
  const { proof, typed, faults, amountCents, plan } = option
  const wrong = new Map(faults.map(({ field }) => [field, WORDS[field] ?? 'Check this field']))
  const field = (name: string, label: Html | string, rules: string, hint: string | null = null) => {
    const fault = wrong.get(name)
    const by = [hint === null ? null : `${name}-hint`, fault === undefined ? null : `${name}-fault`]
      .filter((one) => one !== null)
      .join(' ')
    return html`<div><label for="${name}">${label}</label><input id="${name}" name="${name}" value="${typed[name] ?? ''}" ${new Html(rules)}${by === '' ? null : html` aria-describedby="${by}"`}${fault === undefined ? null : new Html(' aria-invalid="true"')}>${hint === null ? null : html`<p class="hint" id="${name}-hint">${hint}</p>`}${faultOf(name, fault)}</div>`
  }
  const type = (value: string, label: string) =>
    html`<label class="pick"><input type="radio" name="account_type" value="${value}" required${(typed.account_type ?? 'checking') === value ? new Html(' checked') : null}>${label}</label>`
  const box = wrong.get('authorized')
  return html`${summary(faults, wrong)}<form method="post" class="once" id="bank-form"><input type="hidden" name="proof" value="${proof}"><input type="hidden" name="option" value="bank">
${field('account_holder_name', 'Name on the account', 'required maxlength="200" autocomplete="name"')}
<div class="pair">${field('routing_number', 'Routing number', 'required inputmode="numeric" pattern="[\\s\\-]*(?:\\d[\\s\\-]*){9}" title="9 digits" autocomplete="off" spellcheck="false"', '9 digits')}
${field('account_number', 'Account number', 'required inputmode="numeric" pattern="[\\s\\-]*(?:\\d[\\s\\-]*){5,17}" title="5 to 17 digits" autocomplete="off" spellcheck="false"', '5 to 17 digits')}</div>
<fieldset id="account_type"><legend>Type of account</legend><div class="pair">${type('checking', 'Checking')}${type('savings', 'Savings')}</div>${faultOf('account_type', wrong.get('account_type'))}</fieldset>
${field('bank_name', html`Bank <small>(optional)</small>`, 'maxlength="200" autocomplete="off"')}
<div><label class="pick"><input type="checkbox" name="authorized" id="authorized" value="true" required${box === undefined ? null : new Html(' aria-invalid="true" aria-describedby="authorized-fault"')}><span>${mandate(option)}</span></label>${faultOf('authorized', box)}</div>
<button>${amountCents === 0 ? 'Authorize payment plan' : `Pay ${dollars(amountCents)} from bank account`}</button>
<p class="safe">${icon('lock')}<span>Your account number is stored encrypted and used only for ${plan ? 'this plan' : 'this payment'}.</span></p></form>`
}

function mandate({ sellerName, amountCents, plan }: BankOption): Html {
  const now = html`<strong>${dollars(amountCents)}</strong>`
  const later =
    plan &&
    html`<strong>${installments(plan.count)}</strong> of ${dollars(plan.cents)} in all, on the dates of the schedule`
  const what = later === null ? now : amountCents === 0 ? later : html`${now} now and ${later},`
  return html`I authorize <bdi>${sellerName}</bdi> to debit ${what} from this account by ACH. Once I have authorized it, it cannot be called back on this page.`
}

/** What is wrong, before the form, with a link to each field. */
function summary(faults: readonly Fault[], words: ReadonlyMap<string, string>): Html | null {
  if (faults.length === 0) return null
  const lines = [...words].map(([name, text]) => html`<li><a href="#${name}">${text}</a></li>`)
  return note('bad', 'Nothing was arranged yet. Please correct:', html`<ul>${lines}</ul>`, 'alert')
}

function faultOf(name: string, text: string | undefined): Html | null {
  return text === undefined ? null : html`<p class="fault" id="${name}-fault">${text}</p>`
}
