import { z } from 'zod'
import { TimeSlice } from '../../application/commands/time-slices.ts'
import type { Endpoint } from './endpoint.ts'
import { check, type Fault } from './faults.ts'

/**
 * What of an answer's data its schema names. A list is checked element by element, in slices, as it may be large.
 * @throws when the data are not what the schema promises.
 */
export async function shown(
  { answers, operation }: Pick<Endpoint<never>, 'answers' | 'operation'>,
  status: number,
  data: unknown,
): Promise<unknown> {
  const schema = answers[status]
  if (!schema) throw new Error(`${operation} declares no answer ${status}`)
  const each = elementOf(schema)
  if (each === null || !Array.isArray(data)) return valid(operation, check(schema, data))
  const slice = new TimeSlice()
  const elements: unknown[] = []
  for (const element of data) {
    elements.push(valid(operation, check(each, element), `[${elements.length}].`))
    const pause = slice.over()
    if (pause) await pause
  }
  return elements
}

/** What of an object is not null: fields that are left out of an answer where there is none. */
export function withoutNulls<Values extends object>(values: Values) {
  const there = Object.entries(values).filter(([, value]) => value !== null)
  return Object.fromEntries(there) as { [Name in keyof Values]?: NonNullable<Values[Name]> }
}

function valid(operation: string, result: ReturnType<typeof check>, within = ''): unknown {
  if ('value' in result) return result.value
  const faults = result.faults.map(({ field, message }: Fault) => `${within}${field} ${message}`)
  throw new Error(`The answer of ${operation} is not as declared: ${faults.join('; ')}`)
}

/** The schema of the elements of a list that says nothing of the list as a whole. */
function elementOf(schema: z.ZodType): z.ZodType | null {
  const list = schema instanceof z.ZodReadonly ? schema.unwrap() : schema
  if (!(list instanceof z.ZodArray) || (list.def.checks ?? []).length > 0) return null
  return list.element as z.ZodType
}
