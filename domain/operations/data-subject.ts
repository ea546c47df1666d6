import { z } from 'zod'
import type { Decider } from '../kernel/decider.ts'
import { type EventOf, eventType } from '../kernel/event-type.ts'

/** The erasure of a person: recorded first, then the person's data key is destroyed. */
export const PersonalDataErased = eventType({
  name: 'PersonalDataErased',
  schema: z.object({ subject: z.string() }),
})
export type DataSubjectEvent = EventOf<typeof PersonalDataErased>

export const dataSubject: Decider<
  { readonly erased: boolean },
  { readonly type: 'Erase'; readonly subject: string },
  DataSubjectEvent
> = {
  category: 'dataSubject',
  events: [PersonalDataErased],
  initialState: { erased: false },
  evolve: () => ({ erased: true }),
  decide: (command, state) => (state.erased ? [] : [PersonalDataErased.of({ subject: command.subject })]),
}
