import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'

/** Go's transparency log, from Debian's packages alone: `golang-go` and `golang-golang-x-mod-dev`. */

const env = {
  PATH: process.env.PATH,
  GO111MODULE: 'off',
  GOPATH: '/usr/share/gocode',
  GOCACHE: resolve('node_modules/.cache/go'),
}

/** Whether this machine has it. */
export const hasGoTlog = spawnSync('go', ['list', 'golang.org/x/mod/sumdb/tlog'], { env }).status === 0

/**
 * Has Go check proofs.
 * @param asked proofs as they were written, and the verifier keys that are trusted.
 * @returns for each why it proves nothing, empty where it does. @throws what Go says where the program does not run.
 */
export function goVerdicts(
  asked: readonly { readonly proof: unknown; readonly keys: readonly string[] }[],
): readonly string[] {
  const { status, stdout, stderr, error } = spawnSync(
    'go',
    ['run', resolve('tests/support/check-proofs.go')],
    {
      env,
      input: JSON.stringify(asked),
      encoding: 'utf8',
      maxBuffer: 2 ** 26,
    },
  )
  if (status !== 0) throw error ?? new Error(stderr)
  return JSON.parse(stdout)
}
