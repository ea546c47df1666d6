import type { Command } from 'commander'
import type { Endpoint } from '../endpoints/endpoint.ts'
import { type CliIo, UsageError } from './io.ts'
import type { OperatorAnswer, RequestInput } from './operator-client.ts'
import { type Output, resource, rows } from './output.ts'
import { fieldsOf, kebab, optionsOf, plain, type RequestField, valuesOf } from './request-fields.ts'
import { type Given, jsonFile, verb } from './verbs.ts'

const JSON_FILE =
  'fields from a JSON file, or - for standard input: nobody sees them in the list of processes; options win'

/** An endpoint as a command; it may be one of any API. */
// biome-ignore lint/suspicious/noExplicitAny: what handlers are given is none of a caller's business
export type CommandEndpoint = Endpoint<any>

/** What a command has that its declaration does not say. */
export interface Further<Options> {
  /** Adds options that are no fields of the request. */
  readonly options?: (command: Command) => unknown
  /** Fields that the request must have, and the command makes where they are not given. */
  readonly makes?: readonly string[]
  /** Calls the endpoint, and whatever else belongs to it; default: calls it. */
  readonly run?: (called: Called<Options>) => Promise<Output>
}

/** A command line, read. */
export interface Called<Options> extends Given<Options> {
  readonly endpoint: CommandEndpoint
  readonly input: RequestInput
}

/** Adds the command of an endpoint: arguments from path and operands, options from the fields of query and body. */
export function endpointCommand<Options extends object = object>(
  io: CliIo,
  program: Command,
  endpoint: CommandEndpoint,
  further: Further<Options> = {},
): void {
  const { summary, command: declared } = endpoint
  const command = commandAt(program, declared!.name).description(plain(summary))
  // only the command that is meant has its schemas looked through
  command.parent!.hook('preSubcommand', (_group, meant) => {
    if (meant === command) define(io, command, endpoint, further)
  })
}

function define<Options extends object>(
  io: CliIo,
  command: Command,
  endpoint: CommandEndpoint,
  { options, makes = [], run = callEndpoint }: Further<Options>,
): void {
  const { path, summary, description, query, body } = endpoint
  const { operands = [] } = endpoint.command!
  const fields = { query: fieldsOf(query), body: fieldsOf(body) }
  const params = [...path.matchAll(/\{(\w+)\}/g)].map(([, param]) => param!)
  for (const param of params) command.argument(`<${kebab(param)}>`)
  for (const operand of operands) {
    const { isRequired, description: what } = (body ? fields.body : fields.query).find(
      ({ name }) => name === operand,
    )!
    command.argument(isRequired ? `<${kebab(operand)}>` : `[${kebab(operand)}]`, what)
  }
  for (const field of [...fields.query, ...fields.body]) {
    if (!operands.includes(field.name)) for (const option of optionsOf(field)) command.addOption(option)
  }
  if (fields.body.some(({ name }) => !operands.includes(name)))
    command.option('--json-file <file>', JSON_FILE)
  options?.(command)
  if (description) command.description(`${plain(summary)}\n\n${description.replaceAll('`', '')}`)
  verb<Options & { readonly jsonFile?: string }>(io, command, (given) => {
    const { args } = given
    const operated = named(operands, args.slice(params.length))
    const input = {
      params: named(params, args),
      query: { ...valuesOf(fields.query, command), ...(!body && operated) },
      ...(body && {
        body: {
          ...jsonFile(given.options.jsonFile),
          ...valuesOf(fields.body, command),
          ...operated,
        },
      }),
    }
    const wanted = [...fields.query, ...fields.body].filter(({ name }) => !makes.includes(name))
    refuseMissing(wanted, { ...input.query, ...input.body })
    return run({ ...given, endpoint, input })
  })
}

/** What an endpoint answers, to be printed. */
async function callEndpoint({ client, endpoint, input }: Called<object>): Promise<Output> {
  return outputOf(endpoint, await client().call(endpoint, input))
}

/** An answer for programs and for people. */
export function outputOf({ command, columns, pagination }: CommandEndpoint, answer: OperatorAnswer): Output {
  const { data } = answer
  if (!columns) return resource(data)
  const { name, items } = command!
  const list = Array.isArray(data) ? data : Object.values(data as object).find(Array.isArray)
  const words = name.split(' ')
  const what = items ?? (words.at(-1) === 'list' ? words[0]! : words.at(-1)!)
  const text = rows(list ?? [], columns, what.replaceAll('-', ' '))
  return pagination ? { json: answer, text: `${text}${moreOf(answer.pagination)}` } : { json: data, text }
}

/** Where a list goes on. */
export function moreOf(pagination: unknown): string {
  const { next, page, has_more } = (pagination ?? {}) as Readonly<Record<string, unknown>>
  if (next !== undefined && next !== null) return `\nMore with --from ${String(next)}`
  return has_more === true ? `\nMore with --page ${Number(page) + 1}` : ''
}

/** The command of some words: those before the last are groups. */
export function commandAt(program: Command, name: string): Command {
  const words = name.split(' ')
  const group = words
    .slice(0, -1)
    .reduce((at, word) => at.commands.find((one) => one.name() === word) ?? at.command(word), program)
  return group.command(words.at(-1)!).allowExcessArguments(false)
}

function named(names: readonly string[], values: readonly string[]): Record<string, string> {
  const pairs = names.map((name, index) => [name, values[index]] as const)
  return Object.fromEntries(pairs.filter((pair): pair is [string, string] => pair[1] !== undefined))
}

function refuseMissing(fields: readonly RequestField[], given: Readonly<Record<string, unknown>>): void {
  const missing = fields.filter(({ name, isRequired }) => isRequired && (given[name] ?? null) === null)
  if (missing.length > 0) {
    throw new UsageError(`missing: ${missing.map(({ name }) => `--${kebab(name)}`).join(', ')}; see --help.`)
  }
}
