import type { ListPage, ListScope, PageRequest } from '../../application/read-models/pages.ts'
import { isId } from '../../domain/kernel/ids.ts'
import { badRequest, wholeNumberParameter } from './fields.ts'
import type { Answer } from './operations.ts'

const DEFAULT_LIMIT = 50
const MAX_LIMIT = 200

/** `page` from 1 and `limit` (50, at most 200). @throws HttpError 400. */
export function pageOf(query: ReadonlyMap<string, string>): PageRequest {
  const page = wholeNumberParameter(query, 'page', { missing: 1, min: 1 })
  const limit = wholeNumberParameter(query, 'limit', { missing: DEFAULT_LIMIT, min: 1 })
  return { page, limit: Math.min(limit, MAX_LIMIT) }
}

/** `tenant_id` and `environment`, where given. @throws HttpError 400. */
export function scopeOf(query: ReadonlyMap<string, string>): ListScope {
  const tenantId = query.get('tenant_id') ?? null
  if (tenantId !== null && !isId(tenantId)) throw badRequest('tenant_id must be an id')
  const environment = query.get('environment') ?? null
  if (environment !== null && environment !== 'live' && environment !== 'sandbox') {
    throw badRequest('environment must be one of live, sandbox')
  }
  return { tenantId, environment }
}

/** A page of a list in the envelope. */
export function listAnswer(request: PageRequest, page: ListPage<unknown>): Answer {
  const total_pages = Math.ceil(page.total / request.limit)
  return {
    data: page.items,
    pagination: {
      page: request.page,
      limit: request.limit,
      total: page.total,
      total_pages,
      has_more: request.page < total_pages,
    },
  }
}
