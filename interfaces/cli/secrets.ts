import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { readSecretFile } from '../../infrastructure/config/secret-files.ts'
import { ConfigError } from '../../infrastructure/config-error.ts'
import { CliError, type CliIo, UsageError } from './io.ts'

/**
 * Looks a secret up: the option, the option's file, the variable, the variable's file.
 * @param options as they were given.
 * @param name the option that takes the secret itself, such as `agentKey`; `<name>File` takes a file.
 * @param variable the environment variable that holds it; `<variable>_FILE` names a file with it.
 * @returns null when it is nowhere.
 * @throws CliError when a file cannot be read; UsageError when both options are given. Neither quotes a secret.
 */
export function secretOf<Name extends string>(
  { env }: Pick<CliIo, 'env'>,
  options: { readonly [Key in Name | `${Name}File`]?: string },
  name: Name,
  variable: string,
): string | null {
  const { [name]: given, [`${name}File` as const]: givenFile } = options
  const option = `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
  if (given !== undefined && givenFile !== undefined) {
    throw new UsageError(`Give either ${option} or ${option}-file.`)
  }
  if (given) return given
  if (givenFile !== undefined) return inFile(`${option}-file`, givenFile)
  const value = env[variable]?.trim()
  if (value) return value
  const named = env[`${variable}_FILE`]?.trim()
  return named ? inFile(`${variable}_FILE`, named) : null
}

/** The text of the options of a secret, for help. */
export function secretHelp(
  what: string,
  variable: string,
): { readonly value: string; readonly file: string } {
  return {
    value: `${what}; others can see it in the list of processes: rather use a file or ${variable}`,
    file: `file with it (${variable}_FILE)`,
  }
}

/** Whether a person can be asked: a terminal on both sides. */
export function isAttended(io: CliIo): boolean {
  return io.stdin.isTTY === true && io.stderr.isTTY === true
}

/** Asks for a secret on the terminal; what is typed is not shown. @throws CliError on Ctrl-C, or for nothing. */
export async function askSecret(io: CliIo, what: string): Promise<string> {
  io.stderr.write(`${what}: `)
  const secret = await question(io, new Writable({ write: (_part, _encoding, done) => done() }), '')
  io.stderr.write('\n')
  if (secret.trim() === '') throw new CliError(`${what}: nothing was entered`)
  return secret.trim()
}

/** Asks on the terminal whether to go on. @returns whether the answer was `yes`. @throws CliError on Ctrl-C. */
export async function confirm(io: CliIo, text: string): Promise<boolean> {
  return (await question(io, io.stderr, `${text} Type yes to go on: `)).trim().toLowerCase() === 'yes'
}

async function question(io: CliIo, output: Writable, text: string): Promise<string> {
  const terminal = createInterface({ input: io.stdin, output, terminal: true })
  const ended = new AbortController()
  const end = () => ended.abort()
  terminal.once('SIGINT', end)
  terminal.once('close', end)
  try {
    return await terminal.question(text, { signal: ended.signal })
  } catch {
    throw new CliError('stopped')
  } finally {
    terminal.off('close', end)
    terminal.close()
  }
}

function inFile(setting: string, path: string): string {
  try {
    return readSecretFile(setting, path)
  } catch (error) {
    throw error instanceof ConfigError ? new CliError(error.message) : error
  }
}
