import { type Rejection, reject } from '../../domain/kernel/rejection.ts'

/** A retry under the same command finds the first attempt's secret, which nobody can show again. */
export function secretGone(what: string, id: string, done = 'created'): Rejection {
  return reject(
    'conflict',
    'already_created',
    `The ${what} ${id} was ${done} by an earlier attempt; its secret cannot be shown again`,
  )
}
