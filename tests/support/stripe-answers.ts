import type { StripeEventType } from './stripe-events.ts'

/** What answers of the stand-in for Stripe are made of. */

export type Params = Readonly<Record<string, unknown>>
/** Names of parameters. */
export type Names<T> = readonly (keyof T & string)[]

export interface Answer {
  readonly status: number
  readonly body: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** An error as Stripe words it. */
export class Refusal extends Error {
  readonly answer: Answer
  constructor(status: number, error: Readonly<Record<string, string>>) {
    super(error.code)
    this.answer = { status, body: { error: { message: 'Stripe says so', ...error } } }
  }
}

export const missing = (param: string) =>
  new Refusal(404, { type: 'invalid_request_error', code: 'resource_missing', param })

/** Something that happened, of which Stripe tells. */
export interface StripeAct {
  readonly type: StripeEventType
  readonly object: unknown
}

let count = 0

/** An id that nothing else has. */
export function newId(kind: string): string {
  count += 1
  return `${kind}_${String(count).padStart(4, '0')}`
}

export function ok(body: unknown): Answer {
  return { status: 200, body }
}

/** A page of what a list answers, newest first. */
export function listed<Kind>(all: ReadonlyMap<string, Kind>, matches: (one: Kind) => boolean): Answer {
  return ok({
    object: 'list',
    data: [...all.values()].filter(matches).reverse(),
    has_more: false,
    url: '/v1',
  })
}

export function found<Kind>(all: ReadonlyMap<string, Kind>, id: string, param: string): Kind {
  const one = all.get(id)
  if (one === undefined) throw missing(param)
  return one
}

/** The parameters of a request, all of which must be known. */
export function only(params: Params, names: readonly string[]): Params {
  for (const name of Object.keys(params)) {
    if (!names.includes(name)) {
      throw new Refusal(400, { type: 'invalid_request_error', code: 'parameter_unknown', param: name })
    }
  }
  return params
}

/** Characters of a product's name at the most. */
const LONGEST_NAME = 250

/** As the real one: a product that is made beside a price has no longer name than others. @throws Refusal */
export function refuseLongNames({ line_items }: Params): void {
  for (const [index, item] of (line_items as { price_data: { product_data: Params } }[]).entries()) {
    const { name } = item.price_data.product_data
    if ([...String(name)].length <= LONGEST_NAME) continue
    const param = `line_items[${index}][price_data][product_data][name]`
    throw new Refusal(400, { type: 'invalid_request_error', code: 'parameter_invalid', param })
  }
}
