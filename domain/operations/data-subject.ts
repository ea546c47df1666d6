import { z } from 'zod'
import type { Decider } from '../kernel/decider.ts'
import { type EventOf, eventType } from '../kernel/event-type.ts'

/** The erasure of a person or employer: recorded first, then that data key is destroyed. */
export const PersonalDataErased = eventType('PersonalDataErased', {
  subject: z.string(),
  /** Which of the subject's data keys, counted from 1; absent = the first. */
  generation: z.number().int().positive().optional(),
  /** Absent: none was given. */
  reason: z.string().optional(),
})
export type DataSubjectEvent = EventOf<typeof PersonalDataErased>

/** The data key that an erasure destroys. */
export function erasedGeneration({ generation }: DataSubjectEvent['data']): number {
  return generation ?? 1
}

/** A subject that is reported again after an erasure has a new data key, which a further erasure destroys. */
export const dataSubject: Decider<
  { readonly erasedUpTo: number },
  {
    readonly type: 'Erase'
    readonly subject: string
    readonly generation: number
    readonly reason?: string | undefined
  },
  DataSubjectEvent
> = {
  category: 'dataSubject',
  events: [PersonalDataErased],
  initialState: { erasedUpTo: 0 },
  evolve: ({ erasedUpTo }, { data }) => ({ erasedUpTo: Math.max(erasedUpTo, erasedGeneration(data)) }),
  decide: ({ subject, generation, reason }, { erasedUpTo }) =>
    generation <= erasedUpTo ? [] : [PersonalDataErased.of({ subject, generation, reason })],
}

/** The stream id of a data subject. */
export function dataSubjectId(subject: string): string {
  return subject.replace('/', '_')
}
