import type { IncomingMessage, ServerResponse } from 'node:http'
import type { z } from 'zod'
import type { OperatorRole } from '../../domain/access/operators.ts'
import { isRejection, type Rejection } from '../../domain/kernel/rejection.ts'
import type { Costs } from '../http/costs.ts'
import type { ErrorCode, HttpError } from '../http/errors.ts'
import type { BodyLine } from '../http/lines.ts'
import type { Method } from '../http/server.ts'
import type { Api, Errors, Pagination } from './api.ts'
import { type Columns, columnsOf, commandNameOf } from './commands.ts'

/** A request on its way through the pipeline. */
export interface Received {
  readonly request: IncomingMessage
  /** For headers that go with a refusal; the pipeline answers. */
  readonly response: ServerResponse
  /** What the request costs its caller. */
  readonly costs: Costs
  /** Parameters of the path as they came. */
  readonly params: Readonly<Record<string, unknown>>
  /** The id of the request, which its events carry as their correlation id. */
  readonly requestId: string
}

/** How a caller is authenticated. */
export interface Access<Host, Caller> {
  /** OpenAPI security requirements, any of which does: names of the API's schemes. */
  readonly security: readonly Readonly<Record<string, readonly string[]>>[]
  /** Statuses that proving can end in, and when, for the description. */
  readonly errors: Errors
  /** Authenticates the caller before a byte of the body is read. @throws HttpError 401, 403, 404, 429. */
  identify(host: Host, received: Received): Promise<Caller>
  /** The `Host` as the caller may see it; default: all of it. */
  readonly seenBy?: (host: Host, caller: Caller) => unknown
  /** Whether the raw bytes are wanted where an endpoint takes no body. */
  readonly signsBytes?: (caller: Caller) => boolean
  /** Nobody but {@link verify} looks at what a body says. */
  readonly ownsBody?: true
  /** The same proof is the same request again, as with an `Idempotency-Key`. */
  readonly isKey?: true
  /** Checks what the raw bytes prove. @throws HttpError 401, 429. */
  readonly verify?: (host: Host, caller: Caller, bytes: Buffer, received: Received) => void | Promise<void>
}

/** Codes of refusals by status. */
export type Refuses = Readonly<Partial<Record<number, readonly ErrorCode[]>>>

/** What an endpoint answers with, by status; a field that its schema does not name never leaves. */
export type Answers = Readonly<Record<number, z.ZodType>>

/** An answer with its status. Handlers of endpoints with one status may return the data alone. */
export class Answer<Status extends number, Data> {
  readonly status: Status
  readonly data: Data
  readonly options: {
    readonly pagination?: Pagination
    readonly replayed?: boolean
    readonly textBytes?: number
  }

  /**
   * @param options `replayed`: says `Idempotent-Replayed: true`; `textBytes`: how large the texts are that it holds as
   *   `JsonText`: its caller is charged for them, and it is written in slices.
   */
  constructor(status: Status, data: Data, options: Answer<Status, Data>['options'] = {}) {
    this.status = status
    this.data = data
    this.options = options
  }
}

type AnswerOf<As extends Answers> = Answer<keyof As & number, z.input<As[keyof As & number]>>

type IsUnion<T, All = T> = T extends unknown ? ([All] extends [T] ? false : true) : never

/** What a handler returns; a rejection is answered in the words of the API. */
export type Returned<As extends Answers> =
  | Rejection
  | AnswerOf<As>
  | (IsUnion<keyof As> extends true ? never : z.input<As[keyof As]>)

/** Thrown for a rejection where a handler cannot return it. */
export class Rejected extends Error {
  readonly rejection: Rejection

  constructor(rejection: Rejection) {
    super(rejection.message)
    this.name = 'Rejected'
    this.rejection = rejection
  }
}

/** What a use case yielded. @throws Rejected. */
export function accepted<Outcome>(outcome: Outcome | Rejection): Outcome {
  if (isRejection(outcome)) throw new Rejected(outcome)
  return outcome
}

/** What a handler is given, past every check of the request's form. */
export interface Call<Host, Caller, Params, Query, Body> {
  readonly host: Host
  readonly caller: Caller
  readonly params: Params
  readonly query: Query
  readonly body: Body
  /** The body as it was sent; what a repeated key is compared by. */
  readonly sent: Readonly<Record<string, unknown>>
  /** The lines of what is sent, as they come, where the endpoint takes lines. @throws HttpError 415; CallerGone. */
  lines(atOnce: number): AsyncIterable<readonly BodyLine[]>
  /** `Idempotency-Key`, where the endpoint takes one. */
  readonly key: string | null
  /** What the request is refused with unless one with its key was accepted before; null: nothing. */
  readonly unlessRepeated: HttpError | null
  readonly requestId: string
  /** A `HEAD` request: only headers are answered. */
  readonly isHead: boolean
  /** Aborts when the caller goes away before the answer. */
  readonly signal: AbortSignal
}

type Output<Schema, Missing> = Schema extends z.ZodType ? z.output<Schema> : Missing

/** One endpoint: what it takes, what it answers, and what it does. */
export interface Declaration<
  Host,
  Caller,
  As extends Answers,
  Params extends z.ZodObject | undefined,
  Query extends z.ZodObject | undefined,
  Body extends z.ZodType | undefined,
> {
  /** The name of the operation: the client's method, unique in its API. */
  readonly operation: string
  /** Method, and path below the API's prefixes with parameters in braces: `GET /files/status/{file_id}`. */
  readonly route: `${Method} /${string}`
  /** One line. */
  readonly summary: string
  /** What a caller must know beyond the schemas, in Markdown. */
  readonly description?: string
  /** Default: the one that callers of the API usually have. */
  readonly access?: Access<Host, Caller>
  readonly params?: Params
  readonly query?: Query
  readonly body?: Body
  /** A body that is taken, where what the schema requires is not enough. */
  readonly example?: unknown
  /** What a line is, where a stream of JSON lines is taken instead of a body: the handler reads it while it comes. */
  readonly line?: z.ZodType
  /**
   * Where `body` is a union: which of its schemas a request is held against, by its caller and what was sent.
   * @throws HttpError for callers that none of them is for.
   */
  readonly bodyFor?: (caller: Caller, sent: Readonly<Record<string, unknown>>) => z.ZodType
  /** Payroll rows, or the like, that a body brings: large calls cost their caller more. */
  readonly rows?: (sent: Readonly<Record<string, unknown>>) => number
  /** Takes an `Idempotency-Key`; says how a repetition is answered, in one sentence. */
  readonly idempotent?: string
  readonly answers: As
  /** The media type of what is answered where that is no JSON: then the data are bytes, or a stream of them, and there is no envelope. */
  readonly produces?: string
  /** The part of a list that an answer shows, where it shows one. */
  readonly pagination?: z.ZodType
  /** The fields of the data stand beside it, too, outside the envelope. */
  readonly alsoBare?: true
  readonly errors?: Errors
  /** Codes of its own refusals by status, besides those of its path's parameters and those that every operation can name. */
  readonly refuses?: Refuses
  /** Asks a provider while its caller waits, such as the card processor. */
  readonly asksOutside?: true
  readonly handle: (
    call: Call<Host, Caller, Output<Params, object>, Output<Query, object>, Output<Body, undefined>>,
  ) => Promise<Returned<As>>
  /** How it is called as a command, beyond what follows from its route; null: it is none. */
  readonly command?: Partial<Command> | null
  /** Of a list, what people see of its rows: columns, or fields as {@link columnsOf} reads them. */
  readonly columns?: Columns | string
  /** Operators that it is for, where they are not those that endpoints of its method usually are for. */
  readonly roles?: readonly OperatorRole[]
}

/** An endpoint as a command: arguments are the path's parameters, options the fields of query and body. */
export interface Command {
  /** For example `projections rebuild`; default: {@link commandNameOf} its route. */
  readonly name: string
  /** Fields of the body, or of the query where there is none, that are arguments too, behind those of the path. */
  readonly operands?: readonly string[]
  /** What a list is of, where the command's name does not say: `messages` of `outbox list`. */
  readonly items?: string
}

/** An endpoint of an API, whatever its types. */
export interface Endpoint<Host>
  extends Omit<
    Declaration<Host, unknown, Answers, undefined, undefined, undefined>,
    'route' | 'params' | 'query' | 'body' | 'bodyFor' | 'access' | 'command' | 'columns' | 'handle'
  > {
  readonly api: Api
  readonly method: Method
  /** Below the API's prefixes. */
  readonly path: string
  readonly access: Access<Host, unknown>
  readonly params?: z.ZodObject
  readonly query?: z.ZodObject
  readonly body?: z.ZodType
  readonly bodyFor?: (caller: unknown, sent: Readonly<Record<string, unknown>>) => z.ZodType
  readonly command?: Command
  readonly columns?: Columns
  readonly handle: (call: Call<Host, unknown, unknown, unknown, unknown>) => Promise<unknown>
}

/**
 * Makes endpoints of an API, whose handlers are given a `Host`.
 * @param usual the access of those that name none, or what makes it of what they declare.
 */
export function endpointsOf<Host, Usual>(
  api: Api,
  usual: Access<Host, Usual> | ((declared: Omit<Endpoint<Host>, 'access'>) => Access<Host, Usual>),
) {
  return <
    const As extends Answers,
    Caller = Usual,
    Params extends z.ZodObject | undefined = undefined,
    Query extends z.ZodObject | undefined = undefined,
    Body extends z.ZodType | undefined = undefined,
  >({
    route,
    access,
    command,
    columns,
    ...declared
  }: Declaration<Host, Caller, As, Params, Query, Body>): Endpoint<Host> => {
    const [method, path] = route.split(' ') as [Method, string]
    const isCommand = api.hasCommands && command !== null
    const endpoint = {
      ...declared,
      ...{ api, method, path },
      ...(isCommand && { command: { name: commandNameOf(method, path), ...command } }),
      ...(columns !== undefined && { columns: typeof columns === 'string' ? columnsOf(columns) : columns }),
    } as unknown as Omit<Endpoint<Host>, 'access'>
    const how = access ?? (typeof usual === 'function' ? usual(endpoint) : usual)
    return { ...endpoint, access: how as Access<Host, unknown> }
  }
}
