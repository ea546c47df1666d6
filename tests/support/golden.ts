/** A list as JSON with one element a line, so that a change of a golden file shows which samples it touches. */
export function oneALine(list: readonly unknown[]): string {
  return `[\n${list.map((one) => JSON.stringify(one)).join(',\n')}\n]`
}
