import type { Application } from '../../../application/commands/application.ts'
import type { ListPage, PageRequest } from '../../../application/ports/read-database.ts'
import { id, word } from '../../endpoints/fields.ts'
import { listed, narrowing } from '../../endpoints/lists.ts'
import type { OperatorHost } from './api.ts'

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

/** Answers with the page of a list that a query asks for. @param show what of an item is shown; default: all. */
export function handleList<Filter, Item, Shown = Item>(
  read: (app: Application, filter: Filter, wanted: PageRequest) => Promise<ListPage<Item>>,
  show: (item: Item, host: OperatorHost) => Shown = (item) => item as unknown as Shown,
) {
  return ({ host, query }: { readonly host: OperatorHost; readonly query: Filter & PageRequest }) =>
    listed(
      query,
      (wanted) => read(host.app, query, wanted),
      (item) => show(item, host),
    )
}

/** What the list of a kind of things is called: `policies` of `policy`. */
export function pluralOf(kind: string): string {
  return `${kind.replaceAll('_', '-')}s`.replace(/ys$/, 'ies')
}
