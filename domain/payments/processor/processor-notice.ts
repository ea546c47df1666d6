import { z } from 'zod'
import { isoTime } from '../../kernel/calendar.ts'
import type { Decider } from '../../kernel/decider.ts'
import { type EventOf, eventType, time } from '../../kernel/event-type.ts'
import { environment, id } from '../../kernel/ids.ts'
import { type Rejection, reject } from '../../kernel/rejection.ts'
import { processorKind } from './processor-kinds.ts'

/**
 * A signed notice of a card processor about something of ours that was not understood: nothing followed from it yet. Its
 * body is in the vault.
 */

export const ProcessorNoticeNotUnderstood = eventType('ProcessorNoticeNotUnderstood', {
  notice_id: id(),
  tenant_id: id(),
  environment: environment(),
  employer_id: id(),
  processor: processorKind,
  /** The processor's id, type and version of it, as far as they could be read. */
  processor_notice_id: z.string().nullable(),
  type: z.string().nullable(),
  version: z.string().nullable(),
  /** Our id of what it is about: a payment link, a payment session or a subscription. */
  about_id: id(),
  at: time(),
})
/** Read again, it was understood and carried out. */
export const ProcessorNoticeCarriedOut = eventType('ProcessorNoticeCarriedOut', {
  notice_id: id(),
  at: time(),
})
/** An operator has seen to it: it is not read again. */
export const ProcessorNoticeResolved = eventType('ProcessorNoticeResolved', {
  notice_id: id(),
  note: z.string().nullable(),
  at: time(),
})

const events = [ProcessorNoticeNotUnderstood, ProcessorNoticeCarriedOut, ProcessorNoticeResolved] as const
export type ProcessorNoticeEvent = EventOf<(typeof events)[number]>
type NotUnderstood = z.output<typeof ProcessorNoticeNotUnderstood.schema>

export const PROCESSOR_NOTICE_STATUSES = ['not_understood', 'carried_out', 'resolved'] as const

export interface ParkedNotice extends NotUnderstood {
  readonly status: (typeof PROCESSOR_NOTICE_STATUSES)[number]
  readonly note: string | null
}

/** Times are epoch milliseconds. */
export type ProcessorNoticeCommand =
  | { readonly type: 'Park'; readonly data: Omit<NotUnderstood, 'at'>; readonly at: number }
  | { readonly type: 'RecordCarriedOut'; readonly at: number }
  | { readonly type: 'Resolve'; readonly note: string | null; readonly at: number }

export const processorNotice: Decider<ParkedNotice | null, ProcessorNoticeCommand, ProcessorNoticeEvent> = {
  category: 'processorNotice',
  events,
  initialState: null,
  evolve(state, event) {
    switch (event.type) {
      case 'ProcessorNoticeNotUnderstood':
        return { ...event.data, status: 'not_understood', note: null }
      case 'ProcessorNoticeCarriedOut':
        return { ...state!, status: 'carried_out' }
      case 'ProcessorNoticeResolved':
        return { ...state!, status: 'resolved', note: event.data.note }
    }
  },
  decide(command, state): readonly ProcessorNoticeEvent[] | Rejection {
    const at = isoTime(command.at)
    // processors send a notice again
    if (command.type === 'Park')
      return state ? [] : [ProcessorNoticeNotUnderstood.of({ ...command.data, at })]
    if (!state) return reject('not_found', 'processor_notice_not_found', 'There is no such processor notice')
    const { notice_id, status } = state
    if (status !== 'not_understood') return []
    switch (command.type) {
      case 'RecordCarriedOut':
        return [ProcessorNoticeCarriedOut.of({ notice_id, at })]
      case 'Resolve':
        return [ProcessorNoticeResolved.of({ notice_id, note: command.note, at })]
    }
  },
}
