/** Names of log fields whose values are ids, counts, codes and addresses of the service itself. */
const SAFE_FIELDS = [
  // requests
  'request_id',
  'interface',
  'caller',
  'operator_id',
  'method',
  'route',
  'status',
  'milliseconds',
  'caller_id',
  'correlation_id',
  'trace_id',
  // the service's own addresses and places
  'mcp',
  'core',
  'payments',
  'portal',
  'ops',
  'operator_token_file',
  'roles',
  // parts at work
  'reason',
  'signal',
  'server_line',
  'text',
  'process_manager',
  'kind',
  'key',
  'attempt',
  'stream',
  'revision',
  // figures
  'data_keys',
  'secrets',
] as const
/** What may stand on a log line beside the event's word. */
export type SafeFields = {
  readonly [Field in (typeof SAFE_FIELDS)[number]]?: string | number | bigint | boolean | null | undefined
}

const SAFE: ReadonlySet<string> = new Set(SAFE_FIELDS)
const MAX_TEXT = 300

/** Keeps the safe fields of a record, masks their texts and drops everything else. */
export function safeFields(fields: SafeFields): Record<string, string | number | boolean | null> {
  const safe: Record<string, string | number | boolean | null> = {}
  for (const [name, value] of Object.entries(fields)) {
    if (!SAFE.has(name) || value === undefined) continue
    if (typeof value === 'string') safe[name] = safeText(value)
    else if (typeof value === 'bigint') safe[name] = value.toString()
    // types are gone at run time: an object that got here stays out
    else if (typeof value === 'number' || typeof value === 'boolean' || value === null) safe[name] = value
  }
  return safe
}

/** Ids of the service and of traces: what looks like a number in them is none. */
const ID = /^(?:[0-9a-f]{24}|[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/

/** A text as it may be told: an id as it is, another one masked. */
export function safeText(text: string): string {
  return ID.test(text) ? text : mask(text)
}

const MASKS: readonly (readonly [RegExp, string])[] = [
  // user and password of an address
  [/\b([a-z][a-z0-9+.-]*:\/\/)[^\s/@]+@/gi, '$1***@'],
  [/\b(Bearer|Basic)\s+\S+/gi, '$1 ***'],
  // keys and tokens by their prefixes
  [/(service_(?:live|test)_sec|whin|whsec)_[A-Za-z0-9+/=_-]+/g, '$1_***'],
  [
    /\b(mcp|op|sk|pk|rk|secret|access|public|link|bca)[_-](?=[A-Za-z0-9+/=_-]*\d)[A-Za-z0-9+/=_-]{8,}/g,
    '$1_***',
  ],
  [/\bsld1\.([A-Za-z0-9/_:]+)\.[A-Za-z0-9_-]+/g, 'sld1.$1.***'],
  [/[^\s@<>"'(]+@[^\s@<>"')]+\.[a-z]{2,}/gi, '***'],
  // social security and employer identification numbers, routing numbers
  [/\b\d{3}-\d{2}-\d{4}\b/g, '***'],
  [/\b\d{2}-\d{7}\b/g, '***'],
  // between letters they are a part of an id
  [/(?<![\w.:-])\d{9}(?![\w.:-])/g, '***'],
]

/** Takes what looks secret or personal out of a text and bounds its length. */
export function mask(text: string): string {
  let masked = text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text
  for (const [pattern, replacement] of MASKS) masked = masked.replace(pattern, replacement)
  return masked
}

/** An error as it may be logged. */
interface SafeError {
  readonly class: string
  readonly code?: string
  readonly message?: string
  /** Where it was thrown: at most ten stack frames, without the message. */
  readonly stack?: readonly string[]
  /** Names of schema, table and constraint of a database error. */
  readonly schema?: string
  readonly table?: string
  readonly constraint?: string
  /** Paths and codes of a schema check's findings. */
  readonly issues?: readonly string[]
  readonly cause?: SafeError
  readonly errors?: readonly SafeError[]
}

const MAX_FRAMES = 10
const MAX_DEPTH = 3

/**
 * What an error tells without quoting data. Messages of the database, of JSON and schema checks
 * quote what they choke on and are left out; of all other messages, quoted parts are.
 */
export function safeError(error: unknown, depth = 0): SafeError {
  if (!(error instanceof Error)) return { class: error === null ? 'null' : typeof error }
  const details = error as Error & Record<string, unknown>
  const name = error.constructor?.name || error.name
  const isDatabaseError = typeof details.severity === 'string' && typeof details.code === 'string'
  const isSchemaError = Array.isArray(details.issues)
  const quotesData = isDatabaseError || isSchemaError || error instanceof SyntaxError
  return {
    class: name,
    ...textOf('code', details.code),
    ...(quotesData ? {} : { message: withoutQuotes(firstLine(error.message)) }),
    ...(isDatabaseError
      ? {
          ...textOf('schema', details.schema),
          ...textOf('table', details.table),
          ...textOf('constraint', details.constraint),
        }
      : {}),
    ...(isSchemaError ? { issues: (details.issues as unknown[]).slice(0, MAX_FRAMES).map(issueText) } : {}),
    ...framesOf(error),
    ...(error.cause !== undefined && depth < MAX_DEPTH ? { cause: safeError(error.cause, depth + 1) } : {}),
    ...(error instanceof AggregateError && depth < MAX_DEPTH
      ? { errors: error.errors.slice(0, 3).map((each) => safeError(each, depth + 1)) }
      : {}),
  }
}

function textOf<Name extends string>(name: Name, value: unknown): { [Key in Name]?: string } {
  const isPlain = typeof value === 'string' && /^[\w.$:-]{1,100}$/.test(value)
  return (isPlain ? { [name]: value } : {}) as { [Key in Name]?: string }
}

function issueText(issue: unknown): string {
  const { code, path } = issue as { code?: unknown; path?: unknown }
  // keys of a record can be data: only plain names and places pass
  const places = Array.isArray(path) ? path.map((part) => (/^\w{1,40}$/.test(String(part)) ? part : '?')) : []
  return `${places.join('.')}: ${String(code)}`
}

function framesOf(error: Error): { readonly stack?: readonly string[] } {
  const frames = (error.stack ?? '')
    .split('\n')
    .filter((line) => /^ {4}at .*(:\d+|<anonymous>|native)\)?$/.test(line))
  return frames.length === 0 ? {} : { stack: frames.slice(0, MAX_FRAMES).map((line) => line.trim()) }
}

function firstLine(message: string): string {
  return message.split('\n', 1)[0]!
}

function withoutQuotes(message: string): string {
  return mask(
    message
      .replace(/"[^"]*("|$)/g, '"…"')
      .replace(/`[^`]*(`|$)/g, '`…`')
      .replace(/(?<!\w)'[^']*('(?!\w)|$)/g, "'…'"),
  )
}
