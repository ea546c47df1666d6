import { AsyncLocalStorage } from 'node:async_hooks'
import {
  type Context,
  defaultTextMapGetter,
  defaultTextMapSetter,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources'
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node'
import type { Step, Tell, Tracing } from '../../application/ports/tracing.ts'
import { safeText } from './redaction.ts'

const KINDS = {
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
} as const

/** How long a stop waits for a collector, in milliseconds. */
const FLUSH_MS = 5_000
/** How long a failure is not told again, in milliseconds. */
const QUIET_MS = 60_000

/** Traces by OpenTelemetry, sent over OTLP/HTTP as JSON. Other standard `OTEL_*` variables are read by the SDK. */
export class OpenTelemetryTraces implements Tracing {
  readonly #provider: NodeTracerProvider
  readonly #tracer: Tracer
  readonly #storage = new AsyncLocalStorage<Context>()
  /** Steps under way that are kept. */
  #kept = 0

  /**
   * @param url where traces are posted.
   * @param failed told that they could not be sent, at most once a minute.
   */
  constructor(url: string, failed: (why: string) => void) {
    this.#provider = new NodeTracerProvider({
      resource: resourceFromAttributes({ 'service.name': 'compstream' })
        .merge(detectResources({ detectors: [envDetector] }))
        .merge(resourceFromAttributes(sdkOnly(defaultResource().attributes))),
      spanProcessors: [new BatchSpanProcessor(new ToldExporter(url, failed))],
    })
    this.#provider.register({ contextManager: null })
    this.#tracer = this.#provider.getTracer('compstream')
  }

  during<T>(step: Step, work: (tell: Tell) => Promise<T>): Promise<T> {
    const parent = this.#contextOf(step)
    const span = parent === null ? null : this.#begin(step, parent)
    if (!span?.isRecording()) return this.#outside(() => work(() => undefined))
    this.#kept += 1
    return this.#storage.run(trace.setSpan(parent!, span), async () => {
      try {
        return await work((attributes) => setAll(span, attributes))
      } catch (error) {
        // its message may quote data
        setAll(span, { 'error.type': error instanceof Error ? error.constructor.name : typeof error })
        throw error
      } finally {
        // what sends it is no part of it
        this.#storage.exit(() => span.end())
        this.#kept -= 1
        // while it is on, every promise of the process costs more
        if (this.#kept === 0) this.#storage.disable()
      }
    })
  }

  past(step: Step & { readonly causedBy: string }, since: number): string | undefined {
    const parent = this.#contextOf(step)
    if (parent === null) return undefined
    const span = this.#begin(step, parent, performance.timeOrigin + since)
    span.end()
    return traceparentOf(trace.setSpan(parent, span))
  }

  current(): string | undefined {
    const current = this.#storage.getStore()
    return current && traceparentOf(current)
  }

  /** The context of what caused a step, or of a trace that it begins; null: it is in none. */
  #contextOf({ causedBy, mayBegin }: Step): Context | null {
    const given = causedBy === undefined ? this.#storage.getStore() : causedBy && contextIn(causedBy)
    return given || (mayBegin ? ROOT_CONTEXT : null)
  }

  /** Whatever step is under way, this is no part of it. */
  #outside<T>(work: () => Promise<T>): Promise<T> {
    return this.#storage.getStore() === undefined ? work() : this.#storage.exit(work)
  }

  #begin({ name, kind, attributes }: Step, parent: Context, startTime?: number): Span {
    const span = this.#tracer.startSpan(
      name,
      { kind: kind === undefined ? SpanKind.INTERNAL : KINDS[kind], startTime },
      parent,
    )
    setAll(span, attributes)
    return span
  }

  /** Sends what was kept, within {@link FLUSH_MS}. */
  async close(): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, FLUSH_MS)
    })
    await Promise.race([this.#provider.shutdown().catch(() => undefined), late])
    clearTimeout(timer)
    for (const api of [trace, propagation]) api.disable()
  }
}

/** The context that a `traceparent` names; null: it names none. */
function contextIn(traceparent: string): Context | null {
  const found = propagation.extract(ROOT_CONTEXT, { traceparent }, defaultTextMapGetter)
  return trace.getSpanContext(found) ? found : null
}

function traceparentOf(of: Context): string | undefined {
  const carrier: Record<string, string> = {}
  propagation.inject(of, carrier, defaultTextMapSetter)
  return carrier.traceparent
}

/** Texts are masked as on log lines: callers choose some ids. */
function setAll(span: Span, attributes: Step['attributes']): void {
  if (!span.isRecording()) return
  for (const [name, value] of Object.entries(attributes)) {
    if (value != null) span.setAttribute(name, typeof value === 'string' ? safeText(value) : value)
  }
  if (attributes['error.type'] != null) span.setStatus({ code: SpanStatusCode.ERROR })
}

/** What the SDK says of itself. */
function sdkOnly(attributes: ReturnType<typeof defaultResource>['attributes']) {
  return Object.fromEntries(Object.entries(attributes).filter(([name]) => name.startsWith('telemetry.')))
}

/** Sends steps, and tells where it could not, at most once in {@link QUIET_MS}. */
class ToldExporter extends OTLPTraceExporter {
  readonly #failed: (why: string) => void
  #quietUntil = Number.NEGATIVE_INFINITY

  constructor(url: string, failed: (why: string) => void) {
    super({ url })
    this.#failed = failed
  }

  override export(...[spans, done]: Parameters<OTLPTraceExporter['export']>): void {
    super.export(spans, (result) => {
      if (result.error && performance.now() >= this.#quietUntil) {
        this.#quietUntil = performance.now() + QUIET_MS
        this.#failed(`${result.error.name}: ${result.error.message}`)
      }
      done(result)
    })
  }
}
