import { access, constants } from 'node:fs/promises'
import { connect } from 'node:net'
import { delimiter, join } from 'node:path'

/** Where tests get a server from. */
export type ServerSource =
  /** Shared with others, perhaps not empty, and not the tests' to kill. */
  | { readonly kind: 'given'; readonly url: string }
  /** Each test file starts one of its own. */
  | { readonly kind: 'program'; readonly path: string }
  | { readonly kind: 'container' }

const DOCKER_ANSWERS_MS = 1_000

/**
 * Looks for a server: the address in an environment variable, then a program on the PATH, then Docker.
 * @param programs names of the server's program, the preferred one first.
 * @returns null when there is none of them: the suites that need one are skipped by name.
 */
export async function findServer(
  variable: string,
  programs: readonly string[],
): Promise<ServerSource | null> {
  const url = process.env[variable]
  if (url) return { kind: 'given', url }
  const path = await findProgram(programs)
  if (path !== null) return { kind: 'program', path }
  return (await dockerAnswers()) ? { kind: 'container' } : null
}

/** Looks for a program on the PATH. @param programs its names, the preferred one first. @returns its path, or null. */
export async function findProgram(programs: readonly string[]): Promise<string | null> {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    for (const program of programs) {
      const path = join(folder, program)
      const runs = await access(path, constants.X_OK).then(
        () => true,
        () => false,
      )
      if (runs) return path
    }
  }
  return null
}

function dockerAnswers(): Promise<boolean> {
  const { DOCKER_HOST: given } = process.env
  const target = given?.startsWith('tcp://')
    ? { host: new URL(given).hostname, port: Number(new URL(given).port) }
    : { path: given?.replace(/^unix:\/\//, '') ?? '/var/run/docker.sock' }
  return new Promise((resolve) => {
    const socket = connect({ ...target, timeout: DOCKER_ANSWERS_MS })
    const done = (answers: boolean) => {
      socket.destroy()
      resolve(answers)
    }
    socket.once('connect', () => done(true))
    socket.once('error', () => done(false))
    socket.once('timeout', () => done(false))
  })
}
