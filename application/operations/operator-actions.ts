import type { z } from 'zod'
import { type OperatorActed, operatorAction } from '../../domain/operations/operator-action.ts'
import type { Application } from '../commands/application.ts'
import { type CommandContext, createdId } from '../commands/command-context.ts'

/** What an operator did to the machinery. Details carry no personal data and no secrets. */
export type OperatorAction = z.output<typeof OperatorActed.schema>

/**
 * Records what an operator does, before it is done.
 * @returns the position of the record in the log.
 */
export async function recordOperatorAction(
  app: Application,
  action: OperatorAction,
  context: CommandContext,
): Promise<bigint> {
  const outcome = await app.commands.create(
    operatorAction,
    createdId(context, operatorAction),
    { type: 'Record', data: action },
    context,
  )
  if ('rejected' in outcome) throw new Error(outcome.message)
  return outcome.position
}
