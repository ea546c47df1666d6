import { SESSION_STATUSES } from '../../domain/payments/sessions/payment-session-status.ts'

/**
 * What partners put into their pages, served as `/compstream.js`: it shows an embedded session in a frame and hears what
 * becomes of it. The client secret goes to the frame by a message, which nobody else can read, and never in an address.
 *
 * Messages are objects with a `type` and the `session`. To the frame: `compstream:mount` (`client_secret`, `proof`). From
 * it: `compstream:ready`, `compstream:shown` (`status`, `proof`), `compstream:resized` (`height`, pixels).
 */
export const COMPSTREAM_SCRIPT = `'use strict'
;(() => {
  const base = new URL('.', document.currentScript.src)
  const STATUSES = ${JSON.stringify(SESSION_STATUSES)}
  const isText = (value) => typeof value === 'string' && value !== '' && value.length <= 1000

  /**
   * Shows the checkout of an embedded session.
   * @param target an element, or a selector of one.
   * @param options.session id of the session; options.clientSecret what it was created with.
   * @param options.onStatus hears of the status whenever it is another one: a hint for the page. Whether money came is what
   *   webhooks tell.
   * @returns an object with unmount().
   */
  function mount(target, { session, clientSecret, onStatus = () => {}, title = 'Payment' }) {
    const place = typeof target === 'string' ? document.querySelector(target) : target
    if (!(place instanceof Element)) throw new TypeError('compstream.mount: there is no such element')
    if (!/^[0-9a-f]{24}$/.test(session)) throw new TypeError('compstream.mount: session must be the id of a session')
    if (!isText(clientSecret)) throw new TypeError('compstream.mount: clientSecret must be a text')
    const frame = document.createElement('iframe')
    let proof = null
    let status = null
    const heard = {
      'compstream:ready'() {
        frame.contentWindow.postMessage({ type: 'compstream:mount', session, client_secret: clientSecret, proof }, base.origin)
      },
      'compstream:shown'(data) {
        if (!STATUSES.includes(data.status) || !isText(data.proof)) return
        proof = data.proof
        if (status === data.status) return
        status = data.status
        onStatus(status)
      },
      'compstream:resized'({ height }) {
        if (Number.isFinite(height)) frame.style.height = Math.min(Math.max(height, 100), 20000) + 'px'
      },
    }
    const hear = ({ source, origin, data }) => {
      if (source === null || source !== frame.contentWindow || origin !== base.origin) return
      if (typeof data !== 'object' || data === null || data.session !== session) return
      if (Object.hasOwn(heard, data.type)) heard[data.type](data)
    }
    addEventListener('message', hear)
    frame.title = title
    frame.allow = 'payment'
    frame.referrerPolicy = 'no-referrer'
    frame.style.cssText = 'display:block;width:100%;height:24rem;border:0'
    frame.src = new URL('embed/' + session, base).href
    place.replaceChildren(frame)
    return {
      unmount() {
        removeEventListener('message', hear)
        frame.remove()
      },
    }
  }

  window.compstream = Object.freeze({ mount })
})()
`

/**
 * Runs in the frame before there is anything to show: it asks the page around it for the secret, believes only pages of
 * the origins that may embed it, and posts the secret to its own address, which answers with the page of the session.
 */
export const FRAME_SCRIPT = `'use strict'
const main = document.querySelector('main')
const { session, origins } = main.dataset
const form = document.forms[0]
let isSent = false
addEventListener('message', ({ source, origin, data }) => {
  if (isSent || source !== parent || !origins.split(' ').includes(origin)) return
  if (typeof data !== 'object' || data === null || data.type !== 'compstream:mount' || data.session !== session) return
  if (typeof data.client_secret !== 'string') return
  isSent = true
  form.elements.client_secret.value = data.client_secret
  form.elements.proof.value = typeof data.proof === 'string' ? data.proof : ''
  form.submit()
})
if (parent !== window) parent.postMessage({ type: 'compstream:ready', session }, '*')
`

/** Runs beside the page of a session in a frame, and tells the page around it how it stands and how high it is. */
export const SHOWN_SCRIPT = `
{
  const { session, origins, status, proof } = document.querySelector('main').dataset
  const [around] = location.ancestorOrigins ?? []
  const told = origins.split(' ').filter((origin) => around === undefined || around === origin)
  const tell = (message) => {
    for (const origin of told) parent.postMessage({ ...message, session }, origin)
  }
  tell({ type: 'compstream:shown', status, proof })
  // as high as what it shows, not as its window
  document.body.style.minHeight = '0'
  new ResizeObserver(() => tell({ type: 'compstream:resized', height: document.body.offsetHeight }))
    .observe(document.body)
}
`
