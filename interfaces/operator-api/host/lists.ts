import { id, word } from '../../endpoints/fields.ts'
import { narrowing } from '../../endpoints/lists.ts'

/** Query parameters that narrow a list. */
export const scope = {
  tenant_id: narrowing(id()),
  environment: narrowing(word('live', 'sandbox')),
}

/** Those of lists whose things have an employer, a carrier and a policy. */
export const ofPolicy = {
  employer_id: narrowing(id()),
  carrier_id: narrowing(id()),
  policy_id: narrowing(id()),
}

/** What the list of a kind of things is called: `policies` of `policy`. */
export function pluralOf(kind: string): string {
  return `${kind.replaceAll('_', '-')}s`.replace(/ys$/, 'ies')
}
