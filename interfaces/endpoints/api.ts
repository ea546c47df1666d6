import type { z } from 'zod'
import type { Rejection } from '../../domain/kernel/rejection.ts'
import type { ErrorWriter, HttpError } from '../http/errors.ts'
import type { JsonFault } from '../http/json/reader.ts'
import type { Fault } from './faults.ts'
import type { JsonSchema, Schemas } from './schemas.ts'

/** When an endpoint is answered with an error status, for the description: one sentence each. */
export type Errors = Readonly<Partial<Record<number, string>>>

/** Which part of a list an answer shows. */
export type Pagination = Readonly<Record<string, unknown>>

/** What the endpoints of one host have in common. */
export interface Api {
  /** `core`, `operator`, `payments`, … */
  readonly name: string
  readonly title: string
  /** What the API is for, in Markdown. */
  readonly description: string
  /** What paths begin with; every endpoint answers under each of them, and the first is shown. */
  readonly prefixes: readonly string[]
  /** OpenAPI security schemes by name. */
  readonly securitySchemes: Readonly<Record<string, object>>
  /** Bytes of a body at the most. */
  readonly bodyLimit: number
  /** No body reads as an empty object. */
  readonly takesEmptyBodies: boolean
  /** The object that a body stands for. @throws HttpError 400 for JSON that is none, where that is refused. */
  readonly objectOf: (value: unknown) => Readonly<Record<string, unknown>>
  /** The error word for a body that is no JSON; null: the general word for the status. */
  readonly unreadable: (kind: JsonFault) => string | null
  /** The refusal of what does not fit a schema; there is at least one fault, in the order of the schema. */
  readonly refuse: (faults: readonly Fault[]) => HttpError
  /** The refusal of what a use case rejects. */
  readonly rejected: (rejection: Rejection) => HttpError
  /** The refusal that an error of a use case stands for; null: it is a failure. */
  readonly refusalOf?: (error: unknown) => HttpError | null
  /** What {@link refusalOf} can answer any endpoint with. */
  readonly errors?: Errors
  readonly writeError: ErrorWriter
  /** Each endpoint is a command of the command line, unless it says otherwise. */
  readonly hasCommands?: true
  /** What the host sends to addresses that its callers register, as OpenAPI path items by name. */
  readonly webhooks?: (schemas: Schemas) => Readonly<Record<string, JsonSchema>>
  /** The body of every error, for the description. */
  readonly errorBody: z.ZodType
  /** Puts what a handler returns into the body of an answer. */
  readonly envelope: {
    readonly wrap: (data: unknown, pagination: Pagination | undefined) => unknown
    /** The same of their schemas. */
    readonly schema: (data: z.ZodType, pagination: z.ZodType | undefined) => z.ZodType
  }
}
