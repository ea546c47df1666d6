import { id, word } from '../../endpoints/fields.ts'
import { narrowing } from '../../endpoints/lists.ts'

/** Query parameters that narrow a list. */
export const scope = {
  tenant_id: narrowing(id()),
  environment: narrowing(word('live', 'sandbox')),
}
