import { type RowOf, table, text } from '../queries/table.ts'

/** Exact words for things: ids of providers, numbers of partners, and keyed fingerprints, which begin with `#`. */
export const searchTerms = table('search_terms', {
  key: ['term', 'kind', 'id'],
  columns: {
    term: text(),
    /** A kind of thing; `any`: the id tells. */
    kind: text(),
    id: text(),
  },
})

/** Names that a search may begin: in lower case, each from every word on. None of them is a person's. */
export const searchNames = table('search_names', {
  key: ['kind', 'name', 'id'],
  columns: { kind: text(), name: text(), id: text() },
})

declare module '../queries/table.ts' {
  interface ReadModels {
    search_terms: RowOf<typeof searchTerms>
    search_names: RowOf<typeof searchNames>
  }
}
