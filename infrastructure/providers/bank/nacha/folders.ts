import { createHash, randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { access, constants, open, readdir, readFile, rename, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import {
  BANK_FOLDERS,
  type BankFolder,
  type BankFolders,
  type FilePlace,
  type IncomingFile,
} from '../../../../application/ports/bank-files.ts'
import { ProviderUnavailable } from '../../../../application/ports/provider.ts'
import { errorCode } from '../../../error-code.ts'
import { exists, syncDirectory } from '../../../private-files.ts'

/** The suffix that the carrier puts behind the name of a file that it fetched. */
export const FETCHED = '.fetched'
/** What we put behind the name of a file that has come. */
const TAKEN = '.taken'
/** Endings of files that are not whole yet, or were dealt with. */
const NOT_INCOMING = /^\.|\.(part|tmp|taken)$/i
/** A file of returns has some hundred bytes for each; more than this is none. */
const MOST_BYTES = 64 * 1024 * 1024

/** Two directories that others put files into and fetch them from. */
export class NachaFolders implements BankFolders {
  readonly #outbox: string
  readonly #inbox: string
  /** A look at both that has not ended: one that hangs is not followed by others, which would take all threads. */
  #looking: Promise<readonly BankFolder[]> | null = null

  constructor({ outboxDir, inboxDir }: { readonly outboxDir: string; readonly inboxDir: string }) {
    this.#outbox = outboxDir
    this.#inbox = inboxDir
  }

  stage(name: string, sha256: string, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    return this.#inOutbox(async () => {
      const path = this.#hidden(name, randomUUID())
      try {
        await write(path, chunks)
        // whole from its first moment, however many write it at once
        await rename(path, this.#hidden(name, sha256))
      } catch (error) {
        // it holds account numbers, and each further attempt writes another one
        await unlink(path).catch(() => undefined)
        throw error
      }
      await syncDirectory(this.#outbox)
    })
  }

  look(name: string, sha256: string): Promise<FilePlace> {
    return this.#inOutbox(async () => {
      // the content of a folder that is away is unknown
      await access(this.#outbox)
      // the carrier may rename it between two looks, never back
      const places = [
        ['staged', this.#hidden(name, sha256)],
        ['exposed', join(this.#outbox, name)],
        ['fetched', join(this.#outbox, `${name}${FETCHED}`)],
      ] as const
      for (const [place, path] of places) if ((await hashOf(path)) === sha256) return place
      return 'absent'
    })
  }

  expose(name: string, sha256: string): Promise<void> {
    return this.#inOutbox(async () => {
      // another process that exposes it has been faster
      await rename(this.#hidden(name, sha256), join(this.#outbox, name)).catch(unlessMissing)
      await this.#removeStaged(name)
      await syncDirectory(this.#outbox)
    })
  }

  withdraw(name: string): Promise<void> {
    return this.#inOutbox(async () => {
      await this.#removeStaged(name)
      await syncDirectory(this.#outbox)
    })
  }

  incoming(): Promise<readonly string[]> {
    return this.#inInbox(async () => {
      const entries = await readdir(this.#inbox, { withFileTypes: true })
      return entries
        .filter((entry) => entry.isFile() && !NOT_INCOMING.test(entry.name))
        .map(({ name }) => name)
        .sort()
    })
  }

  read(name: string): Promise<IncomingFile | null> {
    return this.#inInbox(async () => {
      const path = join(this.#inbox, name)
      try {
        const { size } = await stat(path)
        if (size > MOST_BYTES) {
          const sha256 = await hashOf(path)
          return sha256 === null ? null : { sha256, bytes: size, content: null }
        }
        const content = await readFile(path)
        return { sha256: createHash('sha256').update(content).digest('hex'), bytes: content.length, content }
      } catch (error) {
        unlessMissing(error)
        return null
      }
    })
  }

  take(name: string, sha256: string): Promise<void> {
    return this.#inInbox(async () => {
      const path = join(this.#inbox, name)
      // nobody has read what came under its name since
      if ((await hashOf(path)) !== sha256) return
      for (let n = 0; ; n += 1) {
        const taken = join(this.#inbox, `${name}${n === 0 ? '' : `.${n}`}${TAKEN}`)
        // an earlier file of that name stays
        if (await exists(taken)) continue
        await rename(path, taken).catch(unlessMissing)
        return
      }
    })
  }

  unusable(): Promise<readonly BankFolder[]> {
    this.#looking ??= this.#lookAtBoth().finally(() => {
      this.#looking = null
    })
    return this.#looking
  }

  async #lookAtBoth(): Promise<readonly BankFolder[]> {
    const paths = { outbox: this.#outbox, inbox: this.#inbox }
    const needed = constants.R_OK | constants.W_OK | constants.X_OK
    const usable = await Promise.all(BANK_FOLDERS.map((folder) => exists(paths[folder], needed)))
    return BANK_FOLDERS.filter((_, index) => !usable[index])
  }

  /** Beside its place, by its content, or while it is being written. */
  #hidden(name: string, what: string): string {
    return join(this.#outbox, `.${name}.${what}.tmp`)
  }

  /** What any attempt, and processes that died, have left of a file: it holds account numbers. */
  async #removeStaged(name: string): Promise<void> {
    // its id, after the day and the modifier of an attempt
    const id = name.slice(name.lastIndexOf('-') + 1)
    const isOfIt = (one: string) => one.startsWith('.') && one.includes(`-${id}.`) && one.endsWith('.tmp')
    const left = (await readdir(this.#outbox)).filter(isOfIt)
    for (const one of left) await unlink(join(this.#outbox, one)).catch(unlessMissing)
  }

  #inOutbox<Result>(run: () => Promise<Result>): Promise<Result> {
    return inFolder('outbox', run)
  }

  #inInbox<Result>(run: () => Promise<Result>): Promise<Result> {
    return inFolder('inbox', run)
  }
}

/** @throws ProviderUnavailable where the operating system would not do it; other errors go through. */
async function inFolder<Result>(which: BankFolder, run: () => Promise<Result>): Promise<Result> {
  try {
    return await run()
  } catch (error) {
    const code = errorCode(error)
    if (code === undefined || !/^E[A-Z]+$/.test(code)) throw error
    throw new ProviderUnavailable(`The ${which} of the bank cannot be used (${code})`)
  }
}

async function write(path: string, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  const file = await open(path, 'wx', 0o600)
  try {
    for await (const chunk of chunks) await file.writeFile(chunk)
    await file.sync()
  } finally {
    await file.close()
  }
}

function unlessMissing(error: unknown): void {
  if (errorCode(error) !== 'ENOENT') throw error
}

/** Null where there is no such file. */
async function hashOf(path: string): Promise<string | null> {
  const hash = createHash('sha256')
  try {
    for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer)
  } catch (error) {
    unlessMissing(error)
    return null
  }
  return hash.digest('hex')
}
