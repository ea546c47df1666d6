import { jsonPieces } from '../http/json-writer.ts'
import type { RpcAnswer } from './json-rpc.ts'

/** What a tool answered; it becomes text when it is written. */
export class ToolResult {
  readonly structured: unknown
  /** Members of the result beside the text. */
  readonly members: Readonly<Record<string, unknown>>

  constructor(structured: unknown, members: Readonly<Record<string, unknown>> = {}) {
    this.structured = structured
    this.members = members
  }
}

/** An answer as JSON text; the result of a tool is text within it. */
export function* answerPieces(answer: RpcAnswer): Generator<string, void, void> {
  if ('error' in answer || !(answer.result instanceof ToolResult)) {
    yield JSON.stringify(answer)
    return
  }
  yield '{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"'
  for (const piece of jsonPieces(answer.result.structured)) yield JSON.stringify(piece).slice(1, -1)
  const members = JSON.stringify(answer.result.members).slice(1, -1)
  yield `"}]${members && `,${members}`}},"id":${JSON.stringify(answer.id)}}`
}

export function* batchPieces(answers: readonly RpcAnswer[]): Generator<string, void, void> {
  for (const [index, answer] of answers.entries()) {
    yield index === 0 ? '[' : ','
    yield* answerPieces(answer)
  }
  yield ']'
}
