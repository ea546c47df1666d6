/** Command ids that are kept with an aggregate at the most. */
const KEPT = 256
/** What one takes, about. */
const COMMAND_BYTES = 128

interface Done {
  readonly commandId: string
  /** Of the last event that the command has in the stream. */
  readonly position: bigint
}

/** The commands behind the last events of a stream, the latest last. Immutable. */
export class RecentCommands {
  /** Those of an empty stream. */
  static readonly NONE = new RecentCommands([], true)
  /** Those of a stream that was not read. */
  static readonly UNKNOWN = new RecentCommands([], false)

  readonly #done: readonly Done[]
  /** False when the stream has others before these. */
  readonly areAll: boolean

  private constructor(done: readonly Done[], areAll: boolean) {
    this.#done = done
    this.areAll = areAll
  }

  /** How many bytes they take, about. */
  get bytes(): number {
    return this.#done.length * COMMAND_BYTES
  }

  positionOf(commandId: string): bigint | null {
    return this.#done.findLast((one) => one.commandId === commandId)?.position ?? null
  }

  /** These and an event of a command after them. */
  with(commandId: string, position: bigint): RecentCommands {
    const isSame = this.#done.at(-1)?.commandId === commandId
    const before = isSame ? this.#done.slice(0, -1) : this.#done.slice(-(KEPT - 1))
    const areAll = this.areAll && (isSame || before.length === this.#done.length)
    return new RecentCommands([...before, { commandId, position }], areAll)
  }
}
