import type { ListScope } from '../../application/read-models/pages.ts'
import { id, word } from '../endpoints/fields.ts'

/** Query parameters that narrow a list. */
export const scope = {
  tenant_id: id().optional(),
  environment: word('live', 'sandbox').optional(),
}

/** What the list is narrowed to. */
export function scopeOf(query: {
  tenant_id?: string | undefined
  environment?: 'live' | 'sandbox' | undefined
}): ListScope {
  return { tenantId: query.tenant_id ?? null, environment: query.environment ?? null }
}
