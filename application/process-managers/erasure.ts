import { erasedGeneration, PersonalDataErased } from '../../domain/operations/data-subject.ts'
import type { Application } from '../application.ts'
import type { RecordedEvent } from '../event-store.ts'
import type { Intent, ProcessManager, WorkItem, WorkOutcome } from './process-manager.ts'

export const ERASURE = 'erasure'
const DESTROY_KEY = 'destroy-key'

/**
 * Carries out erasures that were recorded: destroys the data key that each names. The command does so
 * itself before it answers; here it happens also when that broke off.
 */
export function erasure(parts: Pick<Application, 'personalData'>): ProcessManager {
  return {
    name: ERASURE,
    handles: [PersonalDataErased],
    react: (events) => events.map(intentOf),
    work: { [DESTROY_KEY]: (item) => destroyKey(parts, item) },
  }
}

/** What the work is given; a type alias, because an interface has no index signature. */
type KeyToDestroy = { readonly subject: string; readonly generation: number }

function intentOf(event: RecordedEvent): Intent {
  const erased = event.data as ReturnType<typeof PersonalDataErased.of>['data']
  const { subject } = erased
  const payload: KeyToDestroy = { subject, generation: erasedGeneration(erased) }
  const key = `${subject}@${payload.generation}`
  return { intent: 'do', kind: DESTROY_KEY, key, payload, because: event }
}

/** By its number: late or repeated, it does not touch the newer key of a person who was reported again. */
async function destroyKey(
  { personalData }: Pick<Application, 'personalData'>,
  { payload }: WorkItem,
): Promise<WorkOutcome> {
  const { subject, generation } = payload as KeyToDestroy
  await personalData.destroyKey(subject, generation)
  return { outcome: 'done' }
}
