import { z } from 'zod'
import { resolveQuarantine } from '../../../application/banking/debits/operator-debits.ts'
import { decideFile } from '../../../application/banking/files/operator-decisions.ts'
import type { Application } from '../../../application/commands/application.ts'
import type { CommandContext } from '../../../application/commands/command-context.ts'
import { eraseSubject } from '../../../application/operations/erasure.ts'
import {
  approveAction,
  declineAction,
  waitingActions,
} from '../../../application/operations/pending-actions.ts'
import type { PendingOperation } from '../../../domain/operations/pending-actions.ts'
import { accepted } from '../../endpoints/endpoint.ts'
import { ofOne, text } from '../../endpoints/fields.ts'
import { BANK_FILE_STATES, DEBIT_STATES } from '../../endpoints/state-codes.ts'
import { contextOf, endpoint } from '../host/api.ts'
import { PendingAction } from '../host/second-operator.ts'

type CarryOut = (
  app: Application,
  target: string,
  reason: string | null,
  context: CommandContext,
) => Promise<unknown>

const CARRY_OUT: Readonly<Record<PendingOperation, CarryOut>> = {
  erase: (app, subject, reason, context) => eraseSubject(app, subject, reason ?? undefined, context),
  releaseDebit: (app, id, note, context) => resolveQuarantine(app, id, { verdict: 'Release', note }, context),
  exposeBankFileAgain: (app, id, note, context) =>
    decideFile(app, id, { type: 'ExposeAgain', note, at: app.clock.now() }, context),
}

const one = ofOne('action_id', 'pending action')

export const pendingActionEndpoints = [
  endpoint({
    operation: 'listPendingActions',
    route: 'GET /pending-actions',
    summary: 'List what waits for a second operator, the oldest first',
    answers: { 200: z.array(PendingAction).readonly() },
    columns: 'action_id operation targets reason requested_by expires_at',
    handle: ({ host }) => waitingActions(host.app),
  }),
  endpoint({
    operation: 'approvePendingAction',
    route: 'POST /pending-actions/{action_id}/approve',
    summary: 'Approve what another operator asked for, and carry it out',
    ...one,
    answers: { 200: PendingAction },
    errors: {
      ...one.errors,
      409: 'Its author cannot approve it; or another operator did, or the present state does not allow it any more',
      429: 'Too many requests without the token of an operator; or as many files were made on that day as their names can tell apart',
    },
    refuses: {
      404: ['bank_file_not_found', 'debit_not_found', 'subject_not_found'],
      409: [
        ...DEBIT_STATES,
        ...BANK_FILE_STATES,
        ...([
          'action_approved',
          'action_declined',
          'bank_file_too_late',
          'second_operator_required',
        ] as const),
      ],
      429: ['no_file_modifier'],
    },
    async handle(call) {
      const { app } = call.host
      const action = accepted(await approveAction(app, call.params.action_id, contextOf(call)))
      const { operation, targets, reason } = action
      // of what was carried out before nothing happens again: approving again goes on with what broke off
      const once = { ...contextOf(call), commandId: action.action_id, mayRepeat: true }
      for (const target of targets) accepted(await CARRY_OUT[operation](app, target, reason, once))
      return action
    },
  }),
  endpoint({
    operation: 'declinePendingAction',
    route: 'POST /pending-actions/{action_id}/decline',
    summary: 'Decline what another operator asked for, or withdraw what you asked for',
    description: 'Nothing is carried out. Again by the same operator it changes nothing.',
    ...one,
    body: z.object({ reason: text().describe('Why. Names nobody: it is kept as it is') }),
    answers: { 200: PendingAction },
    errors: { ...one.errors, 409: 'The action was approved already, or another operator declined it' },
    refuses: { 409: ['action_approved', 'action_declined'] },
    async handle(call) {
      const { host, params, body } = call
      return accepted(await declineAction(host.app, params.action_id, body.reason, contextOf(call)))
    },
  }),
]
