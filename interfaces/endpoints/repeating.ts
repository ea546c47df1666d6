import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { HttpError } from '../http/errors.ts'

/** Changes that take back what a resource is shown as. */

/** A change that may repeat what else is shown of a resource, see {@link changeOf}. */
export function repeating<Change extends z.ZodObject>(shown: z.ZodObject, change: Change): Change {
  const names = Object.keys(shown.shape).filter((name) => !(name in change.shape))
  const repeated = names.map((name) => [
    name,
    z.unknown().optional().meta({ readOnly: true, description: 'May be repeated, not changed' }),
  ])
  return change.extend(Object.fromEntries(repeated)) as unknown as Change
}

/** What is said of a change without any field that it takes, of the first of them. */
export function noneGiven(change: z.ZodObject): { readonly path: string[]; readonly error: string } {
  const names = Object.keys(change.shape)
  return { path: names.slice(0, 1), error: `is required: send at least one of ${names.join(', ')}` }
}

/**
 * What a body of {@link repeating} may change.
 * @param shown the resource as it is shown at this moment.
 * @throws HttpError 400 where the body has something else of it in another way.
 */
export function changeOf<Change extends z.ZodObject>(
  { shape }: Change,
  { sent, body }: { readonly sent: Readonly<Record<string, unknown>>; readonly body: z.output<Change> },
  shown: Readonly<Record<string, unknown>>,
): z.output<Change> {
  refuseFixed(sent, Object.fromEntries(Object.entries(shown).filter(([name]) => !(name in shape))))
  return Object.fromEntries(Object.entries(body).filter(([name]) => name in shape)) as z.output<Change>
}

/** Refuses a change of what stays as it was made; a change may repeat it. @throws HttpError 400. */
export function refuseFixed(
  sent: Readonly<Record<string, unknown>>,
  fixed: Readonly<Record<string, unknown>>,
): void {
  for (const [name, value] of Object.entries(fixed)) {
    if (Object.hasOwn(sent, name) && !isDeepStrictEqual(sent[name], value)) {
      throw new HttpError(400, null, `${name} cannot be changed`, { code: 'field_invalid', field: name })
    }
  }
}
