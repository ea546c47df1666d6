import { z } from 'zod'
import type { Decider } from '../kernel/decider.ts'
import { type EventOf, eventType } from '../kernel/event-type.ts'
import { environment, id } from '../kernel/ids.ts'
import { type Rejection, reject } from '../kernel/rejection.ts'
import { sealContext, sealed } from '../kernel/sealed.ts'

/**
 * One intake: an employer and a policy that a partner asked for in one call, under a key of its own. What was sent is
 * kept for audit, and so that the end of an intake that broke off creates what was asked for first.
 */
const personal = (subject: 'employer' | 'person') =>
  sealed({
    subject,
    boundTo: ({ data, path }) => sealContext(`intake-${data.intake_id}`, 'IntakeReceived', path.join('.')),
  })

export const IntakeReceived = eventType('IntakeReceived', {
  intake_id: id(),
  tenant_id: id(),
  environment: environment(),
  /** From which the ids of all that is created derive. */
  command_id: z.string(),
  carrier_id: id(),
  /** The employer that the FEIN is reserved for: registered already, or next. */
  employer_id: id(),
  /** JSON of the employer as it was sent, the FEIN normalized, sealed. */
  employer: personal('employer'),
  fein_notation: z.enum(['employer', 'person']),
  /** The FEIN was sent as nine digits alone, which may be either's. */
  is_fein_bare: z.literal(true).optional(),
  owners: z.array(
    z.object({
      /** JSON of the owner as it was sent, sealed. */
      person: personal('person'),
      /** From coverage. */
      excluded: z.boolean(),
    }),
  ),
  policy: z.object({
    policy_number: z.string(),
    /** 2-letter, upper case. */
    state: z.string(),
    class_code: z.string(),
    effective_date: z.string(),
    expiration_date: z.string(),
    annual_premium_cents: z.number().int().positive(),
    el_limit_tier: z.string().nullable(),
  }),
})
export const IntakeCompleted = eventType('IntakeCompleted', {
  intake_id: id(),
  employer_id: id(),
  policy_id: id(),
})
/** Nothing was created: its key is as if it had never been used. */
export const IntakeRefused = eventType('IntakeRefused', { intake_id: id(), reason: z.string() })

/** The intake broke off, and nobody sent it again for long: an employer may be there without the policy. */
export const IntakeUnfinished = eventType('IntakeUnfinished', { intake_id: id(), employer_id: id() })

const events = [IntakeReceived, IntakeCompleted, IntakeRefused, IntakeUnfinished] as const
export type IntakeEvent = EventOf<(typeof events)[number]>
export type ReceivedIntake = z.output<typeof IntakeReceived.schema>
export interface Intake {
  readonly received: ReceivedIntake
  /** Null until both employer and policy are there. */
  readonly completed: z.output<typeof IntakeCompleted.schema> | null
  readonly isReportedUnfinished: boolean
}
export type IntakeCommand =
  | { readonly type: 'Receive'; readonly data: ReceivedIntake }
  | { readonly type: 'RecordUnfinished' }
  | { readonly type: 'Complete'; readonly employerId: string; readonly policyId: string }
  /** @param reason the code of the rejection. */
  | { readonly type: 'Refuse'; readonly commandId: string; readonly reason: string }

export const intake: Decider<Intake | null, IntakeCommand, IntakeEvent> = {
  category: 'intake',
  events,
  initialState: null,
  evolve(state, event) {
    switch (event.type) {
      case 'IntakeReceived':
        return { received: event.data, completed: null, isReportedUnfinished: false }
      case 'IntakeCompleted':
        return { ...state!, completed: event.data }
      case 'IntakeRefused':
        return null
      case 'IntakeUnfinished':
        return { ...state!, isReportedUnfinished: true }
    }
  },
  decide(command, state): readonly IntakeEvent[] | Rejection {
    // of two that come at once, the first one counts
    if (command.type === 'Receive') return state ? [] : [IntakeReceived.of(command.data)]
    // it was refused meanwhile
    if (!state && command.type === 'RecordUnfinished') return []
    if (!state) return reject('not_found', 'intake_not_found', 'No such intake')
    if (state.completed) return []
    const { intake_id, employer_id, command_id } = state.received
    if (command.type === 'RecordUnfinished') {
      return state.isReportedUnfinished ? [] : [IntakeUnfinished.of({ intake_id, employer_id })]
    }
    if (command.type === 'Refuse') {
      return command.commandId === command_id ? [IntakeRefused.of({ intake_id, reason: command.reason })] : []
    }
    return [IntakeCompleted.of({ intake_id, employer_id: command.employerId, policy_id: command.policyId })]
  },
}

const SYMBOLS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/**
 * The number of a policy that was sent without one: `WC-XXXX-XXXX-XXXX`, digits and letters without I, L, O and U, 60
 * bits of the policy's id.
 */
export function assignedPolicyNumber(policyId: string): string {
  const bits = BigInt(`0x${policyId}`)
  const symbols = Array.from({ length: 12 }, (_, n) => SYMBOLS[Number((bits >> BigInt(5 * n)) & 31n)])
  return `WC-${[0, 4, 8].map((from) => symbols.slice(from, from + 4).join('')).join('-')}`
}
