import { type Html, html } from './html.ts'

/** Dates and times as payers read them: in words, in the time of New York, by which the banks go. */

const ZONE = 'America/New_York'
const DAY = new Intl.DateTimeFormat('en-US', { dateStyle: 'long', timeZone: ZONE })
const SHORT_DAY = new Intl.DateTimeFormat('en-US', { dateStyle: 'medium', timeZone: ZONE })
const CALENDAR_DAY = new Intl.DateTimeFormat('en-US', { dateStyle: 'long', timeZone: 'UTC' })
const MOMENT = new Intl.DateTimeFormat('en-US', {
  year: 'numeric',
  month: 'long',
  day: 'numeric',
  hour: 'numeric',
  minute: '2-digit',
  timeZoneName: 'short',
  timeZone: ZONE,
})

/** `November 23, 2026`. @param at ISO 8601. */
export function day(at: string): Html {
  return html`<time datetime="${at}">${DAY.format(Date.parse(at))}</time>`
}

/** `Nov 23, 2026`. @param at ISO 8601. */
export function shortDay(at: string): Html {
  return html`<time datetime="${at}">${SHORT_DAY.format(Date.parse(at))}</time>`
}

/** `November 23, 2026 at 3:01 PM EST`. @param at ISO 8601. */
export function moment(at: string): Html {
  return html`<time datetime="${at}">${MOMENT.format(Date.parse(at))}</time>`
}

/** The same as {@link day} of a calendar date. @param date `YYYY-MM-DD`. */
export function calendarDay(date: string): Html {
  return html`<time datetime="${date}">${CALENDAR_DAY.format(Date.parse(date))}</time>`
}
