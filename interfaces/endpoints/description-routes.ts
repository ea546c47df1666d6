import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type express from 'express'
import { runInTimeSlices } from '../../application/commands/time-slices.ts'
import project from '../../package.json' with { type: 'json' }
import { limitAddress, type RateLimits } from '../http/rate-limit.ts'
import type { Route } from '../http/server.ts'
import { errorsPage } from './error-codes.ts'
import { describing, type Endpoints } from './openapi.ts'

/** Bytes that are served as they are. */
interface Resource {
  readonly type: string
  readonly bytes: Buffer
  /** Lower-case hex. */
  readonly sha256: string
}

/** Finds what the build makes: the files of the viewer, and the package of the client. */
const BUILT = createRequire(import.meta.url)

/** The viewer runs and styles itself from its own files, reads the description, and does nothing else. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const START = `SwaggerUIBundle({
  url: document.getElementById('description').dataset.url,
  dom_id: '#description',
  deepLinking: true,
  // a page to read: it asks nobody for secrets
  supportedSubmitMethods: [],
  validatorUrl: null,
  defaultModelsExpandDepth: 0,
  defaultModelRendering: 'model',
  defaultModelExpandDepth: 3,
  showCommonExtensions: true,
  syntaxHighlight: false,
})
`

/**
 * Routes that describe the endpoints of a host to anybody: `/openapi.json`, `/docs`, a page that shows it,
 * `/docs/errors`, which explains the codes of errors, and `/client.tgz`, the package of the client for Node.js.
 * Everything is made when it is first asked for, and sent as ready bytes from then on.
 * @param limits what callers are counted against, by address; large answers count more.
 * @param publicUrl base address under which callers reach the host; null when there is none but its own.
 * @param documents what else is described, by path.
 */
export function descriptionRoutes(
  endpoints: Endpoints,
  limits: Pick<RateLimits, 'addresses'>,
  publicUrl: string | null,
  documents: Readonly<Record<string, () => object>> = {},
): readonly Route[] {
  const { title } = endpoints[0]!.api
  const base = publicUrl === null ? '' : new URL(publicUrl).pathname.replace(/\/$/, '')
  const json = 'application/json; charset=utf-8'
  const html = 'text/html; charset=utf-8'
  const script = 'text/javascript; charset=utf-8'
  const style = 'text/css; charset=utf-8'
  const client = once(() => built('application/gzip', '#client.tgz'))
  const files: Readonly<Record<string, () => Promise<Resource> | Resource>> = {
    '/openapi.json': async () => {
      const document = await runInTimeSlices(describing(endpoints, project.version, publicUrl))
      return resource(json, JSON.stringify(document))
    },
    ...Object.fromEntries(
      Object.entries(documents).map(([path, make]) => [path, () => resource(json, JSON.stringify(make()))]),
    ),
    '/client.tgz': client,
    '/docs': async () => resource(html, page(title, base, (await client()).sha256)),
    '/docs/errors': () => resource(html, errorsPage(title, base)),
    '/docs/start.js': () => resource(script, START),
    '/docs/swagger-ui-bundle.js': () => built(script, '#viewer/swagger-ui-bundle.js'),
    '/docs/swagger-ui.css': () => built(style, '#viewer/swagger-ui.css'),
  }
  return Object.entries(files).map(([path, make]) => {
    const made = once(make)
    return {
      method: 'GET' as const,
      path,
      async handle(request, response) {
        const file = await made()
        const isKnown = request.headers['if-none-match']?.includes(file.sha256) === true
        limitAddress(limits.addresses, request, isKnown ? 0 : file.bytes.length)
        send(response, file, isKnown)
      },
    }
  })
}

function send(response: express.Response, { type, bytes, sha256 }: Resource, isKnown: boolean): void {
  response.setHeader('ETag', `"${sha256}"`)
  response.setHeader('Cache-Control', 'no-cache')
  response.setHeader('Content-Security-Policy', CONTENT_SECURITY_POLICY)
  response.setHeader('Referrer-Policy', 'no-referrer')
  if (isKnown) {
    response.statusCode = 304
    response.end()
    return
  }
  response.statusCode = 200
  response.setHeader('Content-Type', type)
  response.setHeader('Content-Length', bytes.length)
  response.end(bytes)
}

function resource(type: string, content: string | Buffer): Resource {
  const bytes = Buffer.from(content)
  return { type, bytes, sha256: createHash('sha256').update(bytes).digest('hex') }
}

async function built(type: string, name: string): Promise<Resource> {
  return resource(type, await readFile(BUILT.resolve(name)))
}

/** Makes something when it is first wanted; a failure is not kept. */
function once<Value>(make: () => Promise<Value> | Value): () => Promise<Value> {
  let made: Promise<Value> | undefined
  return () => {
    made ??= Promise.resolve()
      .then(make)
      .catch((error) => {
        made = undefined
        throw error
      })
    return made
  }
}

/**
 * @param base path of the public address, without a slash at its end.
 * @param sha256 of the client's package.
 */
function page(title: string, base: string, sha256: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${base}/docs/swagger-ui.css">
</head>
<body>
<main id="description" data-url="${base}/openapi.json">
<p>The description of this API is in <a href="${base}/openapi.json">openapi.json</a>.</p>
</main>
<footer>
<p>The client for Node.js is <a href="${base}/client.tgz">client.tgz</a>, SHA-256 <code>${sha256}</code>.</p>
</footer>
<script src="${base}/docs/swagger-ui-bundle.js"></script>
<script src="${base}/docs/start.js"></script>
</body>
</html>
`
}
