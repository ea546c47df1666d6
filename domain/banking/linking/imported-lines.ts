/** Lines that share a piece of memory. */
const BLOCK = 1024

/** A line of an import, and a fingerprint of what it says, not 0. */
export interface ImportedLine {
  readonly line: number
  readonly fingerprint: number
}

/**
 * Which lines of an import are stored, with a fingerprint of each: four bytes a line, about. A value never changes; one
 * with further lines shares most of its memory.
 */
export class ImportedLines {
  static readonly NONE = new ImportedLines([], 0, 0)

  readonly #blocks: readonly (Int32Array | undefined)[]
  /** How many there are. */
  readonly size: number
  /** The last line, 0 when there is none. */
  readonly last: number

  private constructor(blocks: readonly (Int32Array | undefined)[], size: number, last: number) {
    this.#blocks = blocks
    this.size = size
    this.last = last
  }

  /** About how many bytes it takes. */
  get bytes(): number {
    return this.#blocks.length * BLOCK * 4
  }

  /** The fingerprint of a line, 0 when it is not stored. @param line from 1. */
  fingerprintOf(line: number): number {
    return this.#blocks[Math.floor(line / BLOCK)]?.[line % BLOCK] ?? 0
  }

  with(lines: readonly ImportedLine[]): ImportedLines {
    const blocks = [...this.#blocks]
    const own = new Set<number>()
    let { size, last } = this
    for (const { line, fingerprint } of lines) {
      const at = Math.floor(line / BLOCK)
      if (!own.has(at)) {
        blocks[at] = blocks[at]?.slice() ?? new Int32Array(BLOCK)
        own.add(at)
      }
      const block = blocks[at]!
      if (block[line % BLOCK] === 0) size += 1
      block[line % BLOCK] = fingerprint
      last = Math.max(last, line)
    }
    return new ImportedLines(blocks, size, last)
  }
}
