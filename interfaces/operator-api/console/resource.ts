import type { StoryKind } from '../../../application/audit/story-streams.ts'
import type { Texts } from './calls.ts'
import type { Row } from './values.ts'

/** What can be done to a thing. */
export interface Action {
  /** As the API's reference names it: `POST /debits/{transaction_id}/release`. */
  readonly route: string
  readonly label: string
  /** Whether the action only tells what would be done. */
  readonly isDry?: true
  /** What of a row is known already beside the parameters of the path, which it or the thing that it is in has by their names. */
  readonly given?: (row: Row) => Texts
  readonly when?: (row: Row, whole: Row) => boolean
}

/** A place of the console: what is listed and shown there, and what can be done. All of it are endpoints of the API. */
export interface Resource {
  /** Below `/console/`. */
  readonly path: string
  readonly title: string
  /** What the place is for, in one sentence. */
  readonly about: string
  readonly list?: string
  /** A row of the list has its parameters by their names. */
  readonly show?: string
  /** Shown below a thing: a list with the same parameters. */
  readonly also?: string
  /** What can be done with a row of it. */
  readonly alsoActions?: readonly Action[]
  /** Where else a row leads. `route`: the endpoint that is shown there, where it is not for every role. */
  readonly links?: (
    row: Row,
  ) => readonly { readonly href: string; readonly label: string; readonly route?: string }[]
  readonly actions?: readonly Action[]
  /** What can be done with what a thing consists of, by its field. */
  readonly parts?: Readonly<Record<string, readonly Action[]>>
  /** What can be done to all of it. */
  readonly whole?: readonly Action[]
  /** The kind of story that a row has. */
  readonly story?: StoryKind | undefined
  /** The page is reached from other places. */
  readonly isHidden?: true
  /** The page is reached from that of all lists. */
  readonly isListed?: true
}
