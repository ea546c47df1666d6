import type { Limits, Originator } from '../../domain/banking/files/nacha/draft.ts'

/** Where a file stands on its way to the bank. */
export type FilePlace =
  /** Beside its place, under another name, whole. */
  | 'staged'
  | 'exposed'
  /** The file transfer has renamed it. */
  | 'fetched'
  /** None of these. */
  | 'absent'

export interface IncomingFile {
  /** Hex. */
  readonly sha256: string
  readonly bytes: number
  /** Null: it is too large to be a report. */
  readonly content: Uint8Array | null
}

/** Files for the bank, and from it. */
export const BANK_FOLDERS = ['outbox', 'inbox'] as const
export type BankFolder = (typeof BANK_FOLDERS)[number]

/** The folders through which files go to a bank and come from it. Failures throw ProviderUnavailable. */
export interface BankFolders {
  /**
   * Writes a file beside its place, for the service alone to read, so that it outlasts a power failure: it is there once it is
   * whole. Attempts that write it with other contents do not meet. @param sha256 of the content, hex.
   */
  stage(name: string, sha256: string, chunks: AsyncIterable<Uint8Array>): Promise<void>
  /** Looks for a file with that content. @param sha256 hex. */
  look(name: string, sha256: string): Promise<FilePlace>
  /** Gives a file that was staged with that content its name, at once, and removes what other attempts have left of it. */
  expose(name: string, sha256: string): Promise<void>
  /** Removes what was staged of a file: it holds account numbers, and goes nowhere. */
  withdraw(name: string): Promise<void>
  /** Names of files that have come, in their order; a file gets its name when it is whole. */
  incoming(): Promise<readonly string[]>
  /** A file that has come; null: it is gone. */
  read(name: string): Promise<IncomingFile | null>
  /** Puts a file that has come out of the way; it is kept. Another one that came under its name since stays. @param sha256 hex. */
  take(name: string, sha256: string): Promise<void>
  /** Which of them cannot be used at present. It fails with nothing, and lasts for as long as a folder does not answer. */
  unusable(): Promise<readonly BankFolder[]>
}

/** Keeps what went to a bank and what came, encrypted. */
export interface BankArchive {
  /** Keeps a content under a reference, in the place of an earlier one. */
  write(ref: string, chunks: AsyncIterable<Uint8Array>): Promise<void>
  /** The content under a reference; empty where there is none. @throws when it was changed. */
  read(ref: string): AsyncIterable<Uint8Array>
}

/** What the rail works with that writes files for a bank. */
export interface BankFiles {
  readonly folders: BankFolders
  readonly archive: BankArchive
  readonly originator: Originator
  readonly limits: Limits
}
