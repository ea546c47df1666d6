import type { ServerResponse } from 'node:http'

/**
 * Answers with JSON. The body goes out in one write with its length, past the framework's own
 * serializer, which would compute an entity tag and parse content types on every answer.
 */
export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  sendJsonText(response, status, JSON.stringify(body))
}

/** Answers with JSON that is already text. */
export function sendJsonText(response: ServerResponse, status: number, text: string): void {
  if (response.headersSent) return
  response.statusCode = status
  response.setHeader('Content-Type', 'application/json; charset=utf-8')
  response.setHeader('Content-Length', Buffer.byteLength(text))
  response.end(text)
}

/** Answers with bytes that no cache may keep for others. */
export function sendBytes(response: ServerResponse, status: number, mediaType: string, bytes: Buffer): void {
  if (response.headersSent) return
  response.statusCode = status
  response.setHeader('Content-Type', mediaType)
  response.setHeader('Content-Length', bytes.length)
  response.end(bytes)
}

/** Answers without a body. */
export function sendEmpty(response: ServerResponse, status: number): void {
  if (response.headersSent) return
  response.statusCode = status
  if (status !== 204) response.setHeader('Content-Length', 0)
  response.end()
}

const callers = new WeakMap<ServerResponse, string>()

/** Notes who proved to be the caller of a request: an id, never a secret. */
export function nameCaller(response: ServerResponse, id: string): void {
  callers.set(response, id)
}

/** The id of a request's caller; null: nobody has proved to be one. */
export function callerIdOf(response: ServerResponse): string | null {
  return callers.get(response) ?? null
}

/** The id of the request that is being answered; it is the correlation id of what the request causes. */
export function requestIdOf(response: ServerResponse): string {
  return String(response.getHeader('X-Request-Id'))
}
