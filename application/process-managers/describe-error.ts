import { UnreadableEvent } from '../event-registry.ts'
import { EventTooLarge, WrongExpectedRevision } from '../ports/event-log.ts'
import { IntegrationEventRefused } from '../ports/integration-events.ts'
import { UnfitPayload } from './reactions.ts'
import { CheckpointMoved } from './work-store.ts'

/**
 * An error as it may be stored and logged. Messages of others can quote values (a parser quotes its
 * input, a database the row), so they are told by name, code and place only.
 */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error'
  if (OWN_ERRORS.some((own) => error instanceof own)) return error.message
  const { code } = error as { code?: unknown }
  const place = /\(?([^\s()]+:\d+):\d+\)?$/m
    .exec(error.stack ?? '')?.[1]
    ?.split('/')
    .slice(-2)
    .join('/')
  return [error.name, typeof code === 'string' ? code : null, place ? `at ${place}` : null]
    .filter((part) => part !== null)
    .join(' ')
}

const OWN_ERRORS = [
  WrongExpectedRevision,
  EventTooLarge,
  UnreadableEvent,
  CheckpointMoved,
  UnfitPayload,
  IntegrationEventRefused,
]
