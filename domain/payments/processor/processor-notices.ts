import { isoTime } from '../../kernel/calendar.ts'
import type { Decider } from '../../kernel/decider.ts'
import { type EventOf, eventType, time } from '../../kernel/event-type.ts'
import { processorKind } from './processor-kinds.ts'

/** How far the notices of a card processor were listed and carried out. The stream id is the processor's kind. */
export const ProcessorNoticesCaughtUp = eventType('ProcessorNoticesCaughtUp', {
  processor: processorKind,
  /** By the processor's clock. */
  until: time(),
})
export type ProcessorNoticesEvent = EventOf<typeof ProcessorNoticesCaughtUp>
type Told = ProcessorNoticesEvent['data']

/** Milliseconds of a processor's clock: nearer steps are not kept, to list them once more changes nothing. */
export const STEP_MS = 86_400_000

export const processorNotices: Decider<
  { readonly until: number | null },
  { readonly type: 'CaughtUp'; readonly processor: Told['processor']; readonly until: number },
  ProcessorNoticesEvent
> = {
  category: 'processorNotices',
  events: [ProcessorNoticesCaughtUp],
  initialState: { until: null },
  evolve: (_state, { data }) => ({ until: Date.parse(data.until) }),
  decide({ processor, until }, state) {
    if (state.until !== null && until < state.until + STEP_MS) return []
    return [ProcessorNoticesCaughtUp.of({ processor, until: isoTime(until) })]
  },
}
