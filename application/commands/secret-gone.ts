import { type Rejection, reject } from '../../domain/kernel/rejection.ts'

const CODE = 'already_created'

/** A retry under the same command finds the first attempt's secret, which cannot be shown again. */
export function secretGone(what: string, id: string, done = 'created'): Rejection {
  return reject(
    'conflict',
    CODE,
    `The ${what} ${id} was ${done} by an earlier attempt; its secret cannot be shown again`,
  )
}

/** Whether a request was rejected because an attempt of its own has done what it asks for. */
export function isSecretGone({ code }: Rejection): boolean {
  return code === CODE
}
