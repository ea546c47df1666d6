import { SafeError } from '../ports/safe-error.ts'

/** What codes of drivers and systems look like: `22P05`, `ECONNREFUSED`. */
const CODE = /^\w{1,40}$/

/**
 * An error as it may be stored, logged and shown. Messages of others can quote values (a parser quotes its input, a
 * database the row): those are told by name, code and place only.
 */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return 'a value was thrown that is no error'
  if (error instanceof SafeError) return error.message
  const { name, message, stack = '', code } = error as Error & { readonly code?: unknown }
  // behind the message, which may look like a place itself
  const begin = stack.indexOf(message)
  const frames = begin < 0 ? '' : stack.slice(begin + message.length)
  const place = /([^/\\(\s]+:\d+):\d+\)?$/m.exec(frames)?.[1]
  return [
    name,
    ...(typeof code === 'string' && CODE.test(code) ? [code] : []),
    ...(place ? [`at ${place}`] : []),
  ].join(' ')
}
