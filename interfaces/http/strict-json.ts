import { isUtf8 } from 'node:buffer'

/** Levels of arrays and objects that a body may nest. */
export const MAX_DEPTH = 64

/** Why a body was refused. */
export type JsonFault = 'syntax' | 'duplicate_key' | 'depth' | 'encoding' | 'characters'

export type ParsedJson =
  | { readonly ok: true; readonly value: unknown }
  | {
      readonly ok: false
      readonly kind: JsonFault
      /** One sentence that never quotes values of the body. */
      readonly message: string
      /** Where, for example `employees[3].first_name`; of duplicate keys and refused characters. */
      readonly path?: string
      /** What the body reads as nevertheless; of duplicate keys and refused characters. */
      readonly value?: unknown
    }

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d

/**
 * Parses a JSON body and refuses what different readers would read differently, or what cannot be
 * stored: invalid UTF-8, duplicate keys, more than {@link MAX_DEPTH} levels, NUL characters and lone
 * surrogates in strings or keys. Keys named `__proto__` are left out.
 *
 * One scan over the bytes checks the depth before anything recursive sees the text, and counts the
 * members; only when the parsed tree holds fewer is the duplicate looked for.
 */
export function parseJson(bytes: Buffer): ParsedJson {
  if (bytes.length === 0) return { ok: false, kind: 'syntax', message: 'The body is empty' }
  if (!isUtf8(bytes)) return { ok: false, kind: 'encoding', message: 'The body is not valid UTF-8' }
  const scanned = scan(bytes)
  if (scanned === null) {
    return { ok: false, kind: 'depth', message: `The body nests deeper than ${MAX_DEPTH} levels` }
  }
  const text = bytes.toString('utf8')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return { ok: false, kind: 'syntax', message: syntaxMessage(error) }
  }
  if (countMembers(value) !== scanned.members) {
    const path = firstDuplicate(text)
    return { ok: false, kind: 'duplicate_key', message: `The key ${path} stands there twice`, path, value }
  }
  if (scanned.doubtfulEscapes) {
    const path = firstRefusedString(value)
    if (path !== null) {
      const where = path === '' ? 'The body' : path
      const message = `${where} holds a character that is refused (NUL or half of a surrogate pair)`
      return { ok: false, kind: 'characters', message, path, value }
    }
  }
  return { ok: true, value }
}

/**
 * Counts members and levels outside strings, and notes escapes of NUL or surrogates.
 * @returns null when the text nests too deep.
 */
function scan(bytes: Buffer): { members: number; doubtfulEscapes: boolean } | null {
  let members = 0
  let depth = 0
  let doubtfulEscapes = false
  const length = bytes.length
  for (let at = 0; at < length; at += 1) {
    const byte = bytes[at]
    if (byte === QUOTE) {
      for (at += 1; at < length; at += 1) {
        const inside = bytes[at]
        if (inside === QUOTE) break
        if (inside === BACKSLASH) {
          at += 1
          if (bytes[at] === 0x75) doubtfulEscapes ||= isDoubtful(bytes, at + 1)
        }
      }
    } else if (byte === COLON) {
      members += 1
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      depth += 1
      if (depth > MAX_DEPTH) return null
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      depth -= 1
    }
  }
  return { members, doubtfulEscapes }
}

/** Whether the hex digits at `at` can be NUL (`0000`) or a surrogate (`d8..` to `df..`). */
function isDoubtful(bytes: Buffer, at: number): boolean {
  const first = bytes[at]
  if (first === 0x64 || first === 0x44) return true
  return first === 0x30 && bytes[at + 1] === 0x30 && bytes[at + 2] === 0x30 && bytes[at + 3] === 0x30
}

/** Members of all objects of a parsed tree; removes `__proto__` on the way. */
function countMembers(root: unknown): number {
  if (typeof root !== 'object' || root === null) return 0
  let members = 0
  const open: object[] = [root]
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (Array.isArray(node)) {
      for (const item of node) if (typeof item === 'object' && item !== null) open.push(item)
      continue
    }
    const record = node as Record<string, unknown>
    for (const key in record) {
      members += 1
      if (key === '__proto__') {
        members += countMembers(record[key])
        delete record[key]
        continue
      }
      const item = record[key]
      if (typeof item === 'object' && item !== null) open.push(item)
    }
  }
  return members
}

/** The path of the first string or key with NUL or a lone surrogate, null when there is none. */
function firstRefusedString(root: unknown): string | null {
  const open: { node: unknown; path: string }[] = [{ node: root, path: '' }]
  for (let entry = open.pop(); entry !== undefined; entry = open.pop()) {
    const { node, path } = entry
    if (typeof node === 'string') {
      if (isRefused(node)) return path
    } else if (Array.isArray(node)) {
      for (let index = node.length - 1; index >= 0; index -= 1) {
        const item: unknown = node[index]
        if (canHoldStrings(item)) open.push({ node: item, path: `${path}[${index}]` })
      }
    } else if (typeof node === 'object' && node !== null) {
      for (const [key, item] of Object.entries(node).reverse()) {
        if (isRefused(key)) return member(path, '(key)')
        if (canHoldStrings(item)) open.push({ node: item, path: member(path, key) })
      }
    }
  }
  return null
}

function canHoldStrings(value: unknown): boolean {
  return typeof value === 'string' || (typeof value === 'object' && value !== null)
}

const LONE_SURROGATE = /\p{Surrogate}/u

function isRefused(text: string): boolean {
  return text.includes('\0') || LONE_SURROGATE.test(text)
}

interface OpenLevel {
  /** The keys seen so far; null in an array. */
  readonly keys: Set<string> | null
  readonly path: string
  key: string
  index: number
}

/** The path of the first key that an object repeats, in a text that is valid JSON. */
function firstDuplicate(text: string): string {
  const levels: OpenLevel[] = []
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at]
    const level = levels.at(-1)
    if (char === '"') {
      const start = at
      for (at += 1; text[at] !== '"'; at += 1) if (text[at] === '\\') at += 1
      if (!level?.keys || !isFollowedByColon(text, at + 1)) continue
      level.key = JSON.parse(text.slice(start, at + 1)) as string
      if (level.keys.has(level.key)) return member(level.path, level.key)
      level.keys.add(level.key)
    } else if (char === '{' || char === '[') {
      const path = level ? (level.keys ? member(level.path, level.key) : `${level.path}[${level.index}]`) : ''
      levels.push({ keys: char === '{' ? new Set() : null, path, key: '', index: 0 })
    } else if (char === '}' || char === ']') {
      levels.pop()
    } else if (char === ',' && level) {
      level.index += 1
    }
  }
  return '(unknown)'
}

function isFollowedByColon(text: string, from: number): boolean {
  let at = from
  while (text[at] === ' ' || text[at] === '\n' || text[at] === '\r' || text[at] === '\t') at += 1
  return text[at] === ':'
}

function member(path: string, key: string): string {
  const shown = key.length > 60 ? `${key.slice(0, 59)}…` : key
  return path === '' ? shown : `${path}.${shown}`
}

/** The parser's own messages quote the body, which may be personal; only the place is taken over. */
function syntaxMessage(error: unknown): string {
  const at = /at position (\d+)/.exec(error instanceof Error ? error.message : '')
  return at ? `The body is not valid JSON (at character ${at[1]})` : 'The body is not valid JSON'
}
