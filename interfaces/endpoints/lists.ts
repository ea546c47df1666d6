import { z } from 'zod'
import type { ListPage, PageRequest } from '../../application/ports/read-database.ts'
import { Answer } from './endpoint.ts'
import { limitText, wholeNumberText } from './fields.ts'

const DEFAULT_LIMIT = 50
const MAX_LIMIT = 200

/** Query parameters of a list: which page of it. */
export const page = {
  page: wholeNumberText({ min: 1, missing: 1 }),
  limit: limitText({ missing: DEFAULT_LIMIT, most: MAX_LIMIT }),
}

/** The part of a list that an answer shows. */
export const pagination = z
  .object({ page: z.int(), limit: z.int(), total: z.int(), total_pages: z.int(), has_more: z.boolean() })
  .meta({ id: 'Pagination' })

/** A page of a list that is there as a whole. */
export function pageOfAll<Item>({ page, limit }: PageRequest, all: readonly Item[]): ListPage<Item> {
  return { items: all.slice((page - 1) * limit, page * limit), total: all.length }
}

/** A query parameter that narrows a list; null where it is missing. */
export function narrowing<Schema extends z.ZodType>(schema: Schema) {
  return schema.optional().transform((value) => value ?? null)
}

/** What endpoints that answer with a page of a list declare. @param filters further parameters, which narrow it. */
export function listOf<Item extends z.ZodType, Filters extends z.ZodRawShape = Record<never, never>>(
  item: Item,
  filters?: Filters,
) {
  const query = z.object({ ...page, ...filters } as typeof page & Filters)
  return { query, answers: { 200: z.array(item).readonly() }, pagination }
}

/** Answers with the page of a list that a query asks for. @param show what of an item is shown; default: all. */
export async function listed<Item, Shown = Item>(
  query: PageRequest,
  read: (page: PageRequest) => Promise<ListPage<Item>>,
  show: (item: Item) => Shown = (item) => item as unknown as Shown,
): Promise<Answer<200, readonly Shown[]>> {
  const { items, total } = await read(query)
  return listAnswer(query, { items: items.map(show), total })
}

/** A page of a list. @param options.span between which moments records were looked for. */
export function listAnswer<Item>(
  request: PageRequest,
  { items, total }: ListPage<Item>,
  { span, ...options }: { readonly textBytes?: number; readonly span?: { readonly from: string } } = {},
): Answer<200, readonly Item[]> {
  const { page, limit } = request
  const total_pages = Math.ceil(total / limit)
  return new Answer(200, items, {
    ...options,
    pagination: { page, limit, total, total_pages, has_more: page < total_pages, ...span },
  })
}
