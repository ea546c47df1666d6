import type { StoryEvent } from './stories.ts'

/** What of an event of a story stands in its graph. */
type Caused = Pick<StoryEvent, 'event_id' | 'sentence' | 'recorded_at' | 'caused_by' | 'metadata'>

/**
 * What caused what, as the text of a Mermaid flowchart: a box for each event, with an arrow from its cause. A cause that is
 * none of the events is a rounded box: the request or timer, by its correlation id, or another event, by its id.
 */
export function causationGraph(events: readonly Caused[]): string {
  const boxes = new Map(events.map(({ event_id }, index) => [event_id, `e${index}`]))
  const causes = new Map<string, string>()
  const lines = ['flowchart TD']
  for (const { event_id, sentence, recorded_at } of events) {
    lines.push(`  ${boxes.get(event_id)}["${label(`${recorded_at ?? ''} ${sentence}`)}"]`)
  }
  for (const { event_id, caused_by, metadata } of events) {
    const cause =
      caused_by === null ? `request ${metadata.correlation_id ?? 'unknown'}` : `event ${caused_by}`
    let from = boxes.get(caused_by ?? '') ?? causes.get(cause)
    if (from === undefined) {
      from = `c${causes.size}`
      causes.set(cause, from)
      lines.push(`  ${from}(["${label(cause)}"])`)
    }
    lines.push(`  ${from} --> ${boxes.get(event_id)}`)
  }
  return lines.join('\n')
}

/** What means something else to Mermaid or in HTML, as its code. */
function label(text: string): string {
  return text
    .trim()
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/["#%{}<>&;`\\]/g, (char) => `#${char.charCodeAt(0)};`)
}
