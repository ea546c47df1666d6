import { z } from 'zod'
import { erasedGeneration, PersonalDataErased } from '../../domain/operations/data-subject.ts'
import type { Application } from '../commands/application.ts'
import { on, perform, processManager, work } from '../followers/process-manager.ts'

/**
 * Carries out erasures that were recorded: destroys the data key that each names. The command does so
 * itself before it answers; here it happens also when that broke off.
 */
export function erasure({ personalData }: Pick<Application, 'personalData'>) {
  return processManager({
    name: 'erasure',
    startAt: 'beginning',
    on: [
      on(PersonalDataErased, ({ data }) => {
        const { subject } = data
        const generation = erasedGeneration(data)
        return [perform('destroy-key', `${subject}@${generation}`, { subject, generation })]
      }),
    ],
    work: {
      'destroy-key': work(
        {
          payload: z.object({ subject: z.string(), generation: z.number() }),
          timeLimitMs: 30_000,
        },
        async ({ payload: { subject, generation } }) => {
          // by its number: late or repeated, it never touches the newer key of a person that was reported again
          await personalData.destroyKey(subject, generation)
        },
      ),
    },
  })
}
