/** Which rows a page begins behind, in the order of their `seq`, and how many it has. */
export interface PageBySeq {
  /** `seq` of the row before; of the first page 0. */
  readonly after: string
  readonly limit: number
}

/** Everything that a query finds in the order of `seq`, page by page. @param limit rows on a page. */
export async function* pagesBySeq<Row extends { readonly seq: number | bigint }>(
  limit: number,
  read: (page: PageBySeq) => Promise<readonly Row[]>,
  after = '0',
): AsyncGenerator<readonly Row[]> {
  for (let last = after; ; ) {
    const page = await read({ after: last, limit })
    yield page
    if (page.length < limit) return
    last = String(page.at(-1)!.seq)
  }
}
