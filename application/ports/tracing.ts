/**
 * Traces: what one request led to, as steps with times, over processes and over the log. None are kept unless the composition
 * root says so; then a step costs nothing but the call.
 */

/** Ids, words of the code and numbers; never personal data. `error.type`: the step failed. */
type Attributes = Readonly<Record<string, string | number | null | undefined>>

/** A step of a trace. */
export interface Step {
  /** Of a small set: words of the code and routes, no ids. */
  readonly name: string
  /** By OpenTelemetry's kinds; default: nobody else takes part. */
  readonly kind?: 'server' | 'client' | 'producer' | 'consumer'
  /** `traceparent` of the step that caused it; null: none did; default: the step under way. What none caused is in no trace. */
  readonly causedBy?: string | null | undefined
  /** Whether it begins a trace where none caused it. */
  readonly mayBegin?: true
  readonly attributes: Attributes
}

/** Adds what is known only in the end. */
export type Tell = (attributes: Attributes) => void

/** Keeps steps. */
export interface Tracing {
  /** Does what a step consists of. */
  during<T>(step: Step, work: (tell: Tell) => Promise<T>): Promise<T>
  /** Keeps a step that is over. @param since when it began, on the clock of `performance.now()`. @returns its `traceparent`. */
  past(step: Step & { readonly causedBy: string }, since: number): string | undefined
  /** `traceparent` of the step under way. */
  current(): string | undefined
}

let tracing: Tracing | null = null

/** Has all steps of this process kept from now on; null: no more. */
export function keepTraces(kept: Tracing | null): void {
  tracing = kept
}

/** Whether steps are kept. */
export function isTraced(): boolean {
  return tracing !== null
}

const TELL_NOBODY: Tell = () => undefined

/** Does what a step consists of. @throws what the work throws. */
export function traced<T>(step: Step, work: (tell: Tell) => Promise<T>): Promise<T> {
  return tracing === null ? work(TELL_NOBODY) : tracing.during(step, work)
}

/**
 * Keeps a step that is over, as a part of the trace of what caused it.
 * @returns the `traceparent` of what follows from it; none where its cause has none.
 */
export function tracedPast(
  step: Step & { readonly causedBy: string | undefined },
  since: number,
): string | undefined {
  const { causedBy } = step
  return tracing === null || causedBy === undefined ? causedBy : tracing.past({ ...step, causedBy }, since)
}

/** `traceparent` (W3C Trace Context) of the step under way; undefined: none is that is kept. */
export function traceparent(): string | undefined {
  return tracing?.current()
}

/** The headers by which another service joins the trace; none where no step is under way. */
export function traceHeaders(): { readonly traceparent?: string } {
  const current = traceparent()
  return current === undefined ? {} : { traceparent: current }
}

const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}/

/** The id of the trace that a `traceparent` names; undefined: it names none. */
export function traceIdOf(text: string | null | undefined): string | undefined {
  return text == null ? undefined : TRACEPARENT.exec(text)?.[1]
}
