import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A step as it came in. */
export interface ReceivedSpan {
  readonly traceId: string
  readonly spanId: string
  /** Empty or absent: it begins a trace. */
  readonly parentSpanId?: string
  readonly name: string
  readonly attributes: readonly { readonly key: string; readonly value: object }[]
}

/** A collector of traces: OTLP over HTTP in JSON. */
export interface OtlpReceiver {
  /** What `OTEL_EXPORTER_OTLP_ENDPOINT` is set to. */
  readonly url: string
  /** Everything that came so far. */
  readonly spans: readonly ReceivedSpan[]
  /** Attributes of the resource that came last. */
  resource(): object
  stop(): Promise<void>
}

type Attributes = ReceivedSpan['attributes']
interface Posted {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: Attributes }
    readonly scopeSpans: readonly { readonly spans: readonly ReceivedSpan[] }[]
  }[]
}

export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = []
  let resource: Attributes = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    if (request.url !== '/v1/traces' || request.headers['content-type'] !== 'application/json') {
      response.writeHead(404).end()
      return
    }
    const { resourceSpans } = JSON.parse(Buffer.concat(chunks).toString()) as Posted
    for (const posted of resourceSpans) {
      resource = posted.resource.attributes
      spans.push(...posted.scopeSpans.flatMap((scope) => scope.spans))
    }
    response.writeHead(200, { 'Content-Type': 'application/json' }).end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    resource: () => Object.fromEntries(resource.map(({ key, value }) => [key, Object.values(value)[0]])),
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
