/** What became of an item of a report. */
export type ItemOutcome =
  | { readonly outcome: 'applied' }
  /** The item told what was known. */
  | { readonly outcome: 'repeated' }
  /** Nothing followed from it, for a person to look at. */
  | { readonly outcome: 'parked'; readonly reason: string }

export const parked = (reason: string): ItemOutcome => ({ outcome: 'parked', reason })
