import { randomUUID } from 'node:crypto'
import { readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isCosigned, isSignedFurther, readNote } from '../../application/audit/checkpoint-note.ts'
import type { CheckpointCopies } from '../../application/audit/log-tree.ts'
import type { StoredCheckpoint } from '../../application/ports/log-tree-store.ts'
import { errorCode } from '../error-code.ts'

/** Copies of checkpoints in a folder: the last of each UTC day, `YYYY-MM-DD.checkpoint`, the last of it that a witness signed, `YYYY-MM-DD-cosigned.checkpoint`, and the newest, `latest.checkpoint`; `verifier-key` has a line for each key that signed one. */
export class CheckpointFolder implements CheckpointCopies {
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
  }

  async keep({ size, note, key, madeAt }: StoredCheckpoint): Promise<void> {
    const day = new Date(madeAt).toISOString().slice(0, 10)
    const names = [`${day}.checkpoint`, 'latest.checkpoint']
    if (isCosigned(note)) names.push(`${day}-cosigned.checkpoint`)
    for (const name of names) {
      const kept = await this.#read(name)
      // somebody may have signed more; what cannot be read is not lost either
      const isOlder = kept === null || (readNote(kept)?.size ?? Number.POSITIVE_INFINITY) < size
      if (isOlder || isSignedFurther(note, kept)) await this.#put(name, note)
    }
    const keys = await this.keys()
    if (!keys.includes(key)) await this.#put('verifier-key', [...keys, key].map((one) => `${one}\n`).join(''))
  }

  async kept(): Promise<readonly string[]> {
    return Promise.all((await this.#names()).map((name) => readFile(join(this.#folder, name), 'utf8')))
  }

  async newest(): Promise<string | null> {
    // `latest` comes behind all days
    const name = (await this.#names()).at(-1)
    return name === undefined ? null : this.#read(name)
  }

  async keys(): Promise<readonly string[]> {
    return ((await this.#read('verifier-key')) ?? '').split('\n').filter((key) => key !== '')
  }

  async #names(): Promise<readonly string[]> {
    return (await readdir(this.#folder)).filter((name) => /^[^.].*\.checkpoint$/.test(name)).sort()
  }

  /** @returns null where there is no such file. */
  async #read(name: string): Promise<string | null> {
    return readFile(join(this.#folder, name), 'utf8').catch((error: unknown) => {
      if (errorCode(error) === 'ENOENT') return null
      throw error
    })
  }

  /** A reader finds all of it or what was there before. */
  async #put(name: string, text: string): Promise<void> {
    const unfinished = join(this.#folder, `.${name}.${randomUUID()}`)
    await writeFile(unfinished, text, { flush: true })
    await rename(unfinished, join(this.#folder, name))
  }
}
