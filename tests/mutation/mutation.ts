/** A mistake that somebody might make, and who should notice. */
export interface Mutation {
  /** Names it in results, in kebab case. */
  readonly id: string
  /** The source with the text, from the root of the project. */
  readonly file: string
  /** Stands there exactly once. */
  readonly find: string
  /** What stands there by mistake. */
  readonly put: string
  /** What a user would suffer. */
  readonly harm: string
  /** Suites that prove the rule, below `tests`, without `.test.ts`: run before all others. */
  readonly suites: readonly string[]
  /** Runs only tests of these suites whose title fits. */
  readonly test?: string
}
