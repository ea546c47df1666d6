import { z } from 'zod'
import type { Decider } from '../kernel/decider.ts'
import { type EventOf, eventType } from '../kernel/event-type.ts'
import { reject } from '../kernel/rejection.ts'

/**
 * Which keys a log was written with: a key check value of the root of its fingerprints, which tells nothing about the
 * root. Keys stand outside the log; by this it is found out whether those at hand are the right ones.
 */
export const KeyCheckValueRecorded = eventType('KeyCheckValueRecorded', {
  key_check_value: z.string().regex(/^[0-9a-f]{24}$/),
})
export type InstallationEvent = EventOf<typeof KeyCheckValueRecorded>
/** Stream id of the one installation that a log belongs to. */
export const INSTALLATION_ID = 'service'

export const installation: Decider<
  { readonly keyCheckValue: string | null },
  { readonly type: 'RecordKeyCheckValue'; readonly keyCheckValue: string },
  InstallationEvent
> = {
  category: 'installation',
  events: [KeyCheckValueRecorded],
  initialState: { keyCheckValue: null },
  evolve: (_state, event) => ({ keyCheckValue: event.data.key_check_value }),
  decide({ keyCheckValue }, state) {
    if (state.keyCheckValue === keyCheckValue) return []
    if (state.keyCheckValue !== null) {
      return reject('conflict', 'other_keys', 'The log was written with other keys')
    }
    return [KeyCheckValueRecorded.of({ key_check_value: keyCheckValue })]
  },
}
