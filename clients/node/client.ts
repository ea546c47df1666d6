import {
  type CallOptions,
  CLIENT_OPTIONS,
  type ClientOptions,
  call,
  type Operation,
  type Request,
  requireKnown,
} from './calls.ts'

/** Types of operations by name, as they are generated from a description. */
export type Operations<Names extends string> = Readonly<Record<Names, OperationTypes>>

interface OperationTypes {
  readonly parameters: { readonly path?: object; readonly query?: object }
  readonly requestBody?: { readonly content: { readonly 'application/json': unknown } }
  readonly responses: object
}

type Given<Parameters> = [NonNullable<Parameters>] extends [never] ? unknown : NonNullable<Parameters>

type BodyOf<Types> = Types extends { requestBody: { content: { 'application/json': infer Body } } }
  ? { readonly body: Body }
  : Types extends { requestBody?: { content: { 'application/json': infer Body } } }
    ? [Body] extends [never]
      ? unknown
      : { readonly body?: Body }
    : unknown

/** What a call of an operation is given: parameters of path and query by name, and the body. */
export type RequestOf<Types extends OperationTypes> = Given<Types['parameters']['path']> &
  Given<Types['parameters']['query']> &
  BodyOf<Types>

type BodiesOf<Responses> = {
  [Status in keyof Responses]: Responses[Status] extends { content: { 'application/json': infer Body } }
    ? Body
    : Responses[Status] extends { content: object }
      ? Uint8Array
      : never
}[keyof Responses]

/** What a call of an operation resolves with. */
export type ResultOf<Types extends OperationTypes> =
  BodiesOf<Types['responses']> extends { ok: true; data: infer Data } ? Data : BodiesOf<Types['responses']>

/** One element of the list that an operation answers with. */
export type ItemOf<Types extends OperationTypes> =
  ResultOf<Types> extends readonly (infer Item)[] ? Item : never

/** What an operation answers that answers a list in pages. */
export type PageOf<Types extends OperationTypes> = Extract<
  BodiesOf<Types['responses']>,
  { pagination: unknown }
>

type Arguments<Asked> =
  Record<never, never> extends Asked
    ? [request?: Asked, options?: CallOptions]
    : [request: Asked, options?: CallOptions]

type NamesOf<Types> = keyof Types & string

/** A client: a method for every operation. */
export type Client<Types extends { [Name in keyof Types]: OperationTypes }> = {
  readonly [Name in keyof Types]: (
    ...given: Arguments<RequestOf<Types[Name]>>
  ) => Promise<ResultOf<Types[Name]>>
} & {
  /** Every element of a list that is answered in pages, one after the other; pages are read as they are needed. */
  readonly each: <Name extends NamesOf<Types>>(
    name: Name,
    ...given: Arguments<RequestOf<Types[Name]>>
  ) => AsyncGenerator<ItemOf<Types[Name]>, void, undefined>
  /** One page of such a list as `data`, and as `pagination` which part of the list it is. */
  readonly page: <Name extends NamesOf<Types>>(
    name: Name,
    ...given: Arguments<RequestOf<Types[Name]>>
  ) => Promise<PageOf<Types[Name]>>
}

/** Makes a client of operations. @param operations what the methods call, by name. */
export function clientOf<Types extends { [Name in keyof Types]: OperationTypes }>(
  operations: Readonly<Record<keyof Types & string, Operation>>,
  client: ClientOptions,
): Client<Types> {
  requireKnown(client, CLIENT_OPTIONS)
  if (!/^https?:/i.test(client.baseUrl) || !URL.canParse(client.baseUrl)) {
    throw new TypeError('baseUrl takes an http or https address')
  }
  const methods = Object.entries<Operation>(operations).map(([name, operation]) => [
    name,
    async (request: Request = {}, options?: CallOptions) =>
      dataOf(operation, await call(name, operation, request, client, options)),
  ])
  return {
    ...Object.fromEntries(methods),
    each: (name: keyof Types & string, request: Request = {}, options?: CallOptions) =>
      elements(name, operations[name], request, client, options),
    page: async (name: keyof Types & string, request: Request = {}, options?: CallOptions) =>
      call(name, paged(name, operations[name]), request, client, options),
  } as Client<Types>
}

interface Wrapped {
  readonly data: unknown
  readonly pagination?: { readonly has_more?: boolean; readonly next?: string | number | null }
}

interface PagedOperation extends Operation {
  readonly pagedBy: 'page' | 'from'
}

function dataOf({ wrapped }: Operation, body: unknown): unknown {
  return wrapped ? (body as Wrapped).data : body
}

/** @throws TypeError for what is no operation that answers in pages. */
function paged(name: string, operation: Operation | undefined): PagedOperation {
  if (!operation) throw new TypeError(`There is no operation ${name}`)
  if (operation.pagedBy === null) throw new TypeError(`${name} does not answer in pages`)
  return operation as PagedOperation
}

async function* elements(
  name: string,
  given: Operation | undefined,
  request: Request,
  client: ClientOptions,
  options: CallOptions | undefined,
): AsyncGenerator<unknown, void, undefined> {
  const operation = paged(name, given)
  const { pagedBy } = operation
  let at = request[pagedBy] ?? (pagedBy === 'page' ? 1 : undefined)
  for (;;) {
    const { data, pagination } = (await call(
      name,
      operation,
      { ...request, [pagedBy]: at },
      client,
      options,
    )) as Wrapped
    yield* data as readonly unknown[]
    if (pagedBy === 'page') {
      if (!pagination?.has_more) return
      at = Number(at) + 1
    } else {
      if (pagination?.next === undefined || pagination.next === null) return
      at = pagination.next
    }
  }
}
