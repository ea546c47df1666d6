import type { Readable, Writable } from 'node:stream'

/** What the command line reads from and writes to. */
export interface CliIo {
  readonly stdin: Readable
  readonly stdout: Writable
  readonly stderr: Writable & { readonly isTTY?: boolean | undefined }
  readonly env: Readonly<Record<string, string | undefined>>
}

/** A failure that the user is told about in one line; ends the program with code 1. */
export class CliError extends Error {
  override readonly name = 'CliError'
}

/** A command line that cannot be meant; ends the program with code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
