import type { Readable, Writable } from 'node:stream'

/** What the command line reads from and writes to. */
export interface CliIo {
  readonly stdin: Readable & { readonly isTTY?: boolean | undefined }
  readonly stdout: Writable
  readonly stderr: Writable & { readonly isTTY?: boolean | undefined }
  readonly env: Readonly<Record<string, string | undefined>>
}

/** How the program ends. */
export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  fileFailed: 3,
  fileUnfinished: 4,
  detailsFailed: 5,
} as const

/** A failure that the user reads in one line. */
export class CliError extends Error {
  override readonly name: string = 'CliError'
  /** What kind of failure it is, in a word or two. */
  readonly error: string
  readonly exitCode: number

  constructor(message: string, { error = 'Failed', exitCode = EXIT.failed as number } = {}) {
    super(message)
    this.error = error
    this.exitCode = exitCode
  }

  /** How people read it. */
  get text(): string {
    return this.message
  }
}

/** A command line that cannot be meant; ends the program with code 2. */
export class UsageError extends CliError {
  override readonly name = 'UsageError'

  constructor(message: string) {
    super(message, { error: 'Usage', exitCode: EXIT.usage })
  }
}

/** What the service answered instead of doing what it was asked, in its own words. */
export class Refusal extends CliError {
  override readonly name = 'Refusal'
  readonly status: number
  /** The code and the field of the answer, as it has them. */
  readonly details: { readonly code?: unknown; readonly field?: unknown }

  constructor(status: number, body: unknown) {
    const { error, message, code, field } = (body ?? {}) as Readonly<Record<string, unknown>>
    super(String(message ?? 'no message'), { error: String(error ?? status) })
    this.status = status
    this.details = { code, field }
  }

  override get text(): string {
    return `${this.error}: ${this.message}`
  }
}
