import { type Called, outputOf } from './endpoint-commands.ts'
import { type Output, resource, rows } from './output.ts'

/** The parts of a story that are shown beside its events. */
interface Told {
  readonly state: unknown
  readonly changes: readonly unknown[] | null
  readonly graph: string | null
}

/** Tells a story: for people its graph alone where they ask for it, else its events and what has changed, or the state. */
export async function showStory({ client, endpoint, input }: Called<object>): Promise<Output> {
  const answer = await client().call(endpoint, input)
  const { state, changes, graph } = answer.data as Told
  const { text } = outputOf(endpoint, answer)
  if (graph !== null) return { json: answer, text: graph }
  const further = changes
    ? rows(changes, { changed: 'path', before: 'before', after: 'after' }, 'changes')
    : resource(state).text
  return { json: answer, text: `${text}\n\n${further}` }
}
