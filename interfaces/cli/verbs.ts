import { readFileSync } from 'node:fs'
import { type Command, InvalidArgumentError } from 'commander'
import { parseJson } from '../http/json/strict-json.ts'
import { CliError, type CliIo } from './io.ts'
import { OperatorClient, type OperatorOptions, operatorToken } from './operator-client.ts'
import type { Output } from './output.ts'

/** What a verb works with. */
export interface Given<Options> {
  readonly io: CliIo
  /** Operands in order. */
  readonly args: readonly string[]
  readonly options: Options & OperatorOptions & { readonly json?: boolean }
  /** The operator API, or another host that takes its token, which is looked for with the first request. */
  client(url?: string): OperatorClient
}

/** Gives a command its action: run, then print the machine form or the table. */
export function verb<Options = object>(
  io: CliIo,
  command: Command,
  run: (given: Given<Options>) => Promise<Output>,
): Command {
  return command.action(async () => {
    const options = command.optsWithGlobals() as Given<Options>['options']
    let asked: Promise<string> | undefined
    const token = () => {
      asked ??= operatorToken(io, options)
      return asked
    }
    const client = (url?: string) => new OperatorClient(io, options, token, url)
    const output = await run({ io, args: command.args, options, client })
    io.stdout.write(`${options.json ? JSON.stringify(output.json, null, 2) : output.text}\n`)
    if (output.failure) throw output.failure
  })
}

/** Does what goes on until it is stopped: Ctrl-C, or SIGTERM, aborts the signal. */
export async function untilStopped<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const stopping = new AbortController()
  const stop = () => stopping.abort()
  const signals = ['SIGINT', 'SIGTERM'] as const
  for (const name of signals) process.once(name, stop)
  try {
    return await work(stopping.signal)
  } finally {
    for (const name of signals) process.off(name, stop)
  }
}

/** An option that is a whole number of 0 or more. */
export function wholeNumber(text: string): number {
  const number = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (!Number.isSafeInteger(number)) throw new InvalidArgumentError('Give a whole number.')
  return number
}

/** An option that is a number of seconds, more than 0. */
export function seconds(text: string): number {
  const number = /^\d{1,9}(\.\d{1,3})?$/.test(text) ? Number(text) : 0
  if (number <= 0) throw new InvalidArgumentError('Give a number of seconds.')
  return number
}

/** The JSON object that a file holds, `{}` without one; refused is what the API refuses. @throws CliError. */
export function jsonFile(file: string | undefined): Readonly<Record<string, unknown>> {
  if (file === undefined) return {}
  const parsed = parseJson(bytesOf(file, file === '-' ? 0 : file))
  if (!parsed.ok) {
    throw new CliError(`${file} cannot be taken: ${parsed.message.replace(/^The body/, 'it')}`)
  }
  if (parsed.leftOut)
    throw new CliError(`${file} cannot be taken: ${parsed.leftOut[0]} is a name that is not kept`)
  const { value } = parsed
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new CliError(`${file} must hold a JSON object`)
  }
  return value as Record<string, unknown>
}

/** What a file holds. @throws CliError that names it. */
export function bytesOf(file: string, place: string | number = file): Buffer {
  try {
    return readFileSync(place)
  } catch (error) {
    throw new CliError(`${file} cannot be read: ${(error as Error).message}`)
  }
}
