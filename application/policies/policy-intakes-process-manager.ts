import { isRejection } from '../../domain/kernel/rejection.ts'
import { IntakeCompleted, IntakeReceived, IntakeRefused, intake } from '../../domain/policies/intake.ts'
import type { Application } from '../commands/application.ts'
import { cancel, contextOf, on, perform, processManager, work } from '../followers/process-manager.ts'

/** How long an intake may be incomplete before the operator is told, in service-clock milliseconds. */
export const UNFINISHED_INTAKE_MS = 60 * 60_000

/** Tells operators of intakes that broke off and that nobody sent again. */
export function policyIntakes(app: Application) {
  return processManager({
    name: 'policy-intakes',
    startAt: 'beginning',
    on: [
      on(IntakeReceived, ({ data: { intake_id }, metadata }) => [
        perform(
          'tell-unfinished',
          intake_id,
          {},
          { at: Date.parse(metadata.recorded_at) + UNFINISHED_INTAKE_MS },
        ),
      ]),
      on(IntakeCompleted, ({ data }) => [cancel('tell-unfinished', data.intake_id)]),
      on(IntakeRefused, ({ data }) => [cancel('tell-unfinished', data.intake_id)]),
    ],
    work: {
      'tell-unfinished': work({}, async (item) => {
        const command = { type: 'RecordUnfinished' } as const
        const outcome = await app.commands.execute(intake, item.key, command, contextOf(item))
        if (isRejection(outcome)) return { outcome: 'stop', why: outcome.message }
      }),
    },
  })
}
