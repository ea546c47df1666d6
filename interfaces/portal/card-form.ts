import { dollars } from '../../domain/kernel/money.ts'
import { Html, html } from './html.ts'
import { icon } from './pieces.ts'

/** Cards of the simulated processor, and what it does with each. */
export const TEST_CARDS = {
  succeeds: { number: '4242 4242 4242 4242', does: 'the payment succeeds' },
  declines: { number: '4000 0000 0000 0002', does: 'the card is declined' },
  times_out: { number: '4000 0000 0000 0119', does: 'the processor does not answer in time' },
} as const
export type TestCard = keyof typeof TEST_CARDS

export function isTestCard(text: string | undefined): text is TestCard {
  return text !== undefined && Object.hasOwn(TEST_CARDS, text)
}

interface CardOption {
  readonly processor: 'simulated' | 'stripe'
  readonly amountCents: number
  /** Proves that a post comes from the page. */
  readonly proof: string
  readonly isOpen: boolean
  /** Whether there is another way to pay. */
  readonly hasOther: boolean
}

/** The option to pay by card: the processor's own form, or that of test cards. */
export function cardOption({ processor, amountCents, proof, isOpen, hasOther }: CardOption): Html {
  const form = processor === 'simulated' ? testForm(amountCents, proof) : mounted(proof, hasOther)
  return html`<details class="way" name="way" id="card"${isOpen ? new Html(' open') : null}>
<summary>${icon('card')}<span>Card<small>Charged now</small></span>${icon('turn', 'turn')}</summary>
<div>${form}</div></details>`
}

function testForm(amountCents: number, proof: string): Html {
  const cards = Object.entries(TEST_CARDS).map(
    ([name, { number, does }], index) =>
      html`<label class="pick"><input type="radio" name="card" value="${name}"${index === 0 ? new Html(' checked') : null}><span>${number}<small class="hint"> ${does}</small></span></label>`,
  )
  return html`<form method="post" class="once"><input type="hidden" name="proof" value="${proof}"><input type="hidden" name="option" value="card">
<fieldset><legend>Test card</legend>${cards}</fieldset>
<button>Pay ${dollars(amountCents)} by card</button></form>`
}

/** The processor's form needs its script, which is loaded once the option is chosen; until then the page says so. */
function mounted(proof: string, hasOther: boolean): Html {
  const other = hasOther ? 'Turn it on, or pay from a bank account.' : 'Turn it on to pay.'
  return html`<form method="post" id="checkout" hidden><input type="hidden" name="proof" value="${proof}"><input type="hidden" name="option" value="checkout"></form>
<div id="card-form"></div><p id="card-state" role="status" class="soft">Paying by card needs JavaScript. ${other}</p>`
}
