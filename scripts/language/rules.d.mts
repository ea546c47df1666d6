/** A rule of language. */
export interface Rule {
  /** What to write, and what not, as the page of words says it. */
  readonly write: string
  readonly not: string
  readonly why: string
  readonly find: RegExp
  /** A text that breaks the rule, and the same one mended. */
  readonly wrong: string
  readonly right: string
}
export const RULES: readonly Rule[]
