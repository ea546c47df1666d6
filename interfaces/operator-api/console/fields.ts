import { z } from 'zod'
import { type Html, html } from '../../portal/html.ts'
import type { Texts } from './calls.ts'
import { words } from './values.ts'

/** A field of a form. */
export interface Field {
  readonly name: string
  readonly hint: string
  readonly kind: 'text' | 'reason' | 'number' | 'flag' | 'time'
  /** What may be chosen; empty: anything may be written. */
  readonly choices: readonly string[]
  readonly isRequired: boolean
  readonly default: string
}

/** What forms need of a field's description. */
interface JsonSchema {
  readonly type?: string | readonly string[]
  readonly anyOf?: readonly JsonSchema[]
  readonly enum?: readonly unknown[]
  readonly format?: string
  readonly default?: unknown
  readonly description?: string
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly override?: JsonSchema
}

/** The console always asks for them. */
const REASONS = new Set(['note', 'reason'])

/** Fields of a query or a body that a form can ask for, by its schema: neither lists nor objects. */
export function fieldsOf(schema: z.ZodType | undefined): readonly Field[] {
  if (!schema) return []
  const whole = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as JsonSchema
  return Object.entries(whole.properties ?? {}).flatMap(([name, property]) => {
    const given = { ...property, ...property.override }
    const [kind, ...others] = kindsOf(given).filter(({ type }) => type !== 'null')
    if (!kind || others.length > 0 || kind.type === 'array' || kind.type === 'object') return []
    const isReason = REASONS.has(name)
    const missing = given.default ?? (schema as z.ZodObject).shape?.[name]?.meta()?.default
    return {
      name,
      hint: given.description ?? kind.description ?? '',
      kind: isReason ? 'reason' : kindOf(kind),
      choices: (kind.enum ?? []).map(String),
      isRequired: isReason || (whole.required?.includes(name) ?? false),
      default: missing === undefined || missing === null ? '' : String(missing),
    }
  })
}

/** What a value may be, one by one. */
function kindsOf(schema: JsonSchema): readonly JsonSchema[] {
  const { anyOf, type } = schema
  if (Array.isArray(type)) return type.map((one) => ({ ...schema, type: one }))
  return anyOf?.flatMap(kindsOf) ?? [schema]
}

function kindOf({ type, format }: JsonSchema): Field['kind'] {
  if (type === 'boolean') return 'flag'
  if (type === 'integer' || type === 'number') return 'number'
  return format === 'date-time' ? 'time' : 'text'
}

/** A field with its label. @param value as the API has it. */
export function input(field: Field, value: string | undefined, isFilter = false): Html {
  const { name, hint, kind, choices, isRequired } = field
  const shown = value ?? (isFilter ? '' : field.default)
  const id = `f-${name}`
  const help =
    hint === '' || isFilter
      ? null
      : html`<span class="hint" id="${id}-hint">${hint.replaceAll('`', '')}</span>`
  const about = help === null ? null : html` aria-describedby="${id}-hint"`
  const attributes = html`id="${id}" name="${name}"${isRequired ? html` required` : null}${about}`
  const label = (text: string) => html`<label for="${id}">${text}</label>`
  const title = kind === 'time' ? `${words(name)} (UTC)` : words(name)
  if (kind === 'flag' && !isFilter) {
    const checked = shown === 'true' ? html` checked` : null
    return html`<div><label class="pick"><input type="checkbox" name="${name}" value="true"${checked}${about}> ${title}</label>${help}</div>`
  }
  const all = kind === 'flag' ? ['true', 'false'] : choices
  if (all.length > 0) {
    const option = (one: string) =>
      html`<option value="${one}"${one === shown ? html` selected` : null}>${one === '' ? (isFilter ? 'any' : '–') : one}</option>`
    const none = isRequired && field.default !== '' ? [] : ['']
    return html`<div>${label(title)}<select ${attributes}>${[...none, ...all].map(option)}</select>${help}</div>`
  }
  if (kind === 'reason') {
    return html`<div>${label(title)}<textarea ${attributes} rows="3" maxlength="500">${shown}</textarea>${help}</div>`
  }
  if (kind === 'time') {
    return html`<div>${label(title)}<input type="datetime-local" step="1" ${attributes} value="${shown.replace(/Z$/, '')}">${help}</div>`
  }
  const numeric = kind === 'number' ? html` inputmode="numeric"` : null
  return html`<div>${label(title)}<input ${attributes}${numeric} value="${shown}" maxlength="500" autocomplete="off">${help}</div>`
}

/** Texts of a form as a query says them; what was left empty is left out. */
export function queryOfForm(fields: readonly Field[], given: Texts): Texts {
  const said = fields.flatMap(({ name, kind }) => {
    const text = given[name]?.trim() ?? ''
    return text === '' ? [] : [[name, kind === 'time' ? withZone(text) : text] as const]
  })
  return Object.fromEntries(said)
}

/** Texts of a form as a body has them. */
export function bodyOfForm(fields: readonly Field[], given: Texts): Record<string, unknown> {
  const kinds = new Map(fields.map(({ name, kind }) => [name, kind]))
  return Object.fromEntries(
    Object.entries(queryOfForm(fields, given)).map(([name, text]) => [name, meant(kinds.get(name)!, text)]),
  )
}

function meant(kind: Field['kind'], text: string): unknown {
  if (kind === 'flag') return text === 'true'
  return kind === 'number' && Number.isFinite(Number(text)) ? Number(text) : text
}

/** Browsers send a moment without a zone, and without seconds where they are 0. */
function withZone(text: string): string {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?$/.test(text)) return text
  return `${text.length === 16 ? `${text}:00` : text}Z`
}
