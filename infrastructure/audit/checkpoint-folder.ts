import { randomUUID } from 'node:crypto'
import { readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { CheckpointCopies } from '../../application/audit/log-tree.ts'
import type { StoredCheckpoint } from '../../application/ports/log-tree-store.ts'

/** Copies of checkpoints in a folder: the last of each UTC day, `YYYY-MM-DD.checkpoint`, and the newest, `latest.checkpoint`. */
export class CheckpointFolder implements CheckpointCopies {
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
  }

  async keep({ note, key, madeAt }: StoredCheckpoint): Promise<void> {
    const day = new Date(madeAt).toISOString().slice(0, 10)
    for (const name of [day, 'latest']) await this.#put(`${name}.checkpoint`, note)
    await this.#put('verifier-key', `${key}\n`)
  }

  async kept(): Promise<readonly string[]> {
    const names = (await readdir(this.#folder)).filter((name) => /^[^.].*\.checkpoint$/.test(name))
    return Promise.all(names.map((name) => readFile(join(this.#folder, name), 'utf8')))
  }

  /** A reader finds all of it or what was there before. */
  async #put(name: string, text: string): Promise<void> {
    const unfinished = join(this.#folder, `.${name}.${randomUUID()}`)
    await writeFile(unfinished, text)
    await rename(unfinished, join(this.#folder, name))
  }
}
