/**
 * What runs on the page of a session, in browsers that run anything: it loads the card processor's script once card is
 * chosen, keeps forms from being sent twice, checks a routing number before it is sent, and shows the truth when the
 * payer comes back to a page that has grown old. Without it the page works as well.
 * @param cardScript address of the card processor's script; null where the form is the service's own.
 */
export function payerScript(cardScript: string | null): string {
  return `'use strict'
const main = document.querySelector('main')
const load = () => location.replace(location.href.split('#')[0])
const current = async () => {
  // in a frame the address alone shows nothing
  const { proof } = main.dataset
  const asked = proof ? { method: 'POST', body: new URLSearchParams({ proof }) } : { cache: 'no-store' }
  const answer = await fetch(location.href, asked)
  if (!answer.ok) return null
  return new DOMParser().parseFromString(await answer.text(), 'text/html').querySelector('main').dataset.state
}
const refresh = async () => {
  const state = await current().catch(() => null)
  if (state !== null && state !== main.dataset.state) load()
  return state
}
addEventListener('pageshow', (event) => { if (event.persisted) load() })
document.addEventListener('visibilitychange', () => { if (!document.hidden) refresh() })
document.getElementById('alert')?.focus()
const routing = document.getElementById('routing_number')
routing?.addEventListener('input', () => {
  const digits = routing.value.replace(/[\\s-]/g, '')
  const sum = [...digits].reduce((total, digit, at) => total + digit * [3, 7, 1][at % 3], 0)
  const isWrong = /^\\d{9}$/.test(digits) && sum % 10 !== 0
  routing.setCustomValidity(isWrong ? 'This is not a routing number: check its digits' : '')
})
for (const form of document.querySelectorAll('form.once')) {
  form.addEventListener('submit', (event) => {
    const button = form.querySelector('button')
    if (button.getAttribute('aria-disabled') === 'true') event.preventDefault()
    button.setAttribute('aria-disabled', 'true')
    button.textContent = 'One moment…'
  })
}
${cardScript === null ? '' : stripeScript(cardScript)}`
}

/** Mounts the embedded checkout of Stripe, once. */
function stripeScript(address: string): string {
  return `const card = document.getElementById('card')
const said = document.getElementById('card-state')
const tell = (text) => { said.textContent = text }
const script = () => new Promise((resolve, reject) => {
  const element = document.createElement('script')
  element.src = ${JSON.stringify(address)}
  element.onload = resolve
  element.onerror = () => reject(new Error('The card form could not be loaded. Check your connection and try again.'))
  document.head.append(element)
})
const settled = async () => {
  tell('Your payment was sent. Waiting for it to be confirmed…')
  for (let tries = 0; tries < 40; tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 1500))
    await refresh()
  }
  tell('Your payment was sent. It is not confirmed yet: look at this page again later, and do not pay twice.')
}
let begun = false
const begin = async () => {
  if (begun || !card.open) return
  begun = true
  tell('Loading the card form…')
  try {
    await script()
    const body = new URLSearchParams(new FormData(document.getElementById('checkout')))
    const answer = await fetch(location.href, { method: 'POST', body }).catch(() => null)
    if (answer?.status === 409) return load()
    // anything else may be the page of a proxy
    const isOwn = answer?.ok || answer?.status === 502
    const checkout = isOwn ? await answer.json().catch(() => ({})) : {}
    if (!checkout.client_secret) throw new Error(checkout.message ?? 'The card form cannot be shown at the moment. Check your connection, and try again in a minute.')
    const stripe = Stripe(checkout.publishable_key)
    const fetchClientSecret = async () => checkout.client_secret
    const mounted = await stripe.createEmbeddedCheckoutPage({ fetchClientSecret, onComplete: () => { mounted.destroy(); settled() } })
    mounted.mount('#card-form')
    tell('')
  } catch (error) {
    begun = false
    tell(error.message)
  }
}
card?.addEventListener('toggle', begin)
if (card?.open) begin()
`
}
