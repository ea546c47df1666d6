import { z } from 'zod'
import type { ListPage, PageRequest } from '../../application/read-models/pages.ts'
import { Answer } from './endpoint.ts'
import { wholeNumberText } from './fields.ts'

const DEFAULT_LIMIT = 50
const MAX_LIMIT = 200

/** Query parameters of a list: which page of it. */
export const page = {
  page: wholeNumberText({ min: 1, missing: 1 }),
  limit: wholeNumberText({ min: 1, missing: DEFAULT_LIMIT }).describe(`At most ${MAX_LIMIT} are shown`),
}

/** The part of a list that an answer shows. */
export const pagination = z.object({
  page: z.int(),
  limit: z.int(),
  total: z.int(),
  total_pages: z.int(),
  has_more: z.boolean(),
})

/** The page that is asked for. */
export function pageOf(query: { readonly page: number; readonly limit: number }): PageRequest {
  return { page: query.page, limit: Math.min(query.limit, MAX_LIMIT) }
}

/** A page of a list that is there as a whole. */
export function pageOfAll<Item>({ page, limit }: PageRequest, all: readonly Item[]): ListPage<Item> {
  return { items: all.slice((page - 1) * limit, page * limit), total: all.length }
}

/** A page of a list. */
export function listAnswer<Item>(
  request: PageRequest,
  { items, total }: ListPage<Item>,
  options: { readonly textBytes?: number } = {},
): Answer<200, readonly Item[]> {
  const { page, limit } = request
  const total_pages = Math.ceil(total / limit)
  return new Answer(200, items, {
    ...options,
    pagination: { page, limit, total, total_pages, has_more: page < total_pages },
  })
}
