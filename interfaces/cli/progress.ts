import cliProgress from 'cli-progress'
import type { CliIo } from './io.ts'

/** How often a line is written where there is no terminal, in milliseconds. */
const LINE_MS = 5_000

/** How far something is. */
export interface Stage {
  readonly done: number
  /** What there is to do; left out while that is not known. */
  readonly total?: number
  /** What else is to be said, in a few words. */
  readonly note?: string
}

/** Shows progress on standard error: a bar on a terminal; elsewhere lines, where they are wanted, or nothing. */
export class Progress {
  readonly #io: Pick<CliIo, 'stderr'>
  readonly #lines: boolean
  #bar: cliProgress.SingleBar | null = null
  #stage = ''
  #lineAt = 0

  /** @param options.lines writes a line at each stage's beginning, and now and then, where there is no terminal. */
  constructor(io: Pick<CliIo, 'stderr'>, options: { readonly lines?: boolean } = {}) {
    this.#io = io
    this.#lines = options.lines ?? false
  }

  /** Shows how far a stage is; another one takes the place of the one before. */
  show(stage: string, { done, total, note = '' }: Stage): void {
    if (this.#io.stderr.isTTY) {
      if (stage !== this.#stage) this.#start(stage, total !== undefined)
      if (total !== undefined) this.#bar?.setTotal(total)
      this.#bar?.update(done, { note })
    } else if (
      this.#lines &&
      (stage !== this.#stage || performance.now() - this.#lineAt >= LINE_MS || done === total)
    ) {
      this.#stage = stage
      this.#lineAt = performance.now()
      const share = total ? `${Math.floor((100 * done) / total)} %` : String(done)
      this.#io.stderr.write(`${stage}: ${[share, note].filter(Boolean).join(', ')}\n`)
    }
  }

  /** Takes the bar away. */
  stop(): void {
    this.#bar?.stop()
    this.#bar = null
    this.#stage = ''
  }

  #start(stage: string, isBounded: boolean): void {
    this.stop()
    this.#stage = stage
    const format = isBounded ? `${stage}  [{bar}] {percentage}%  {note}` : `${stage}  {value}  {note}`
    this.#bar = new cliProgress.SingleBar({ format, stream: this.#io.stderr, clearOnComplete: true })
    this.#bar.start(0, 0, { note: '' })
  }
}
