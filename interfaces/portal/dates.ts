import { type Html, html } from './html.ts'

/** Dates and times as payers read them: in words, in the time of New York, by which the banks go. */

const timeZone = 'America/New_York'

/** Shows a time in ISO 8601, or a date `YYYY-MM-DD`. */
function shownAs(form: Intl.DateTimeFormatOptions): (at: string) => Html {
  const format = new Intl.DateTimeFormat('en-US', form)
  return (at) => html`<time datetime="${at}">${format.format(Date.parse(at))}</time>`
}

/** `November 23, 2026`. */
export const day = shownAs({ dateStyle: 'long', timeZone })
/** `Nov 23, 2026`. */
export const shortDay = shownAs({ dateStyle: 'medium', timeZone })
/** The same as {@link day} of a calendar date. */
export const calendarDay = shownAs({ dateStyle: 'long', timeZone: 'UTC' })

const date = { year: 'numeric', month: 'long', day: 'numeric' } as const
/** `November 23, 2026 at 3:01 PM EST`. */
export const moment = shownAs({
  ...date,
  hour: 'numeric',
  minute: '2-digit',
  timeZoneName: 'short',
  timeZone,
})
