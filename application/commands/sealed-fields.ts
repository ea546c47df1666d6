import type { EventType } from '../../domain/kernel/event-type.ts'
import {
  hiddenValues,
  isSealed,
  type Sealed,
  type SensitiveValue,
  sensitiveValues,
} from '../../domain/kernel/sealed.ts'
import type { PersonalData } from '../ports/personal-data.ts'

/** What readers see of sensitive values: masked, or opened by the declarations on the event types. */

/** Shown in place of a sensitive value. */
export const MASK = '•••'
/** Shown when a value does not open: it was tampered with, or copied from elsewhere. */
export const UNREADABLE = '(unreadable)'

/** Personal data for who may not see them: whatever is opened reads as masked. */
export function maskedData(data: PersonalData): PersonalData {
  return {
    seal: (items) => data.seal(items),
    open: async (items) => items.map(() => MASK),
    keyGeneration: (subject) => data.keyGeneration(subject),
    destroyKey: (subject, generation) => data.destroyKey(subject, generation),
    subjectId: (kind, identity) => data.subjectId(kind, identity),
    fingerprint: (purpose, value) => data.fingerprint(purpose, value),
  }
}

type TypedData = { readonly schema: EventType['schema']; readonly data: unknown }

/** A copy of an event's data with every sensitive value masked. */
export function masked({ schema, data }: TypedData): unknown {
  const copy = structuredClone(data)
  for (const { holder, key } of hiddenValues(schema, copy)) holder[key] = MASK
  return copy
}

/** A copy of a folded state with the sensitive values of its events masked, wherever they stand in it. */
export function maskedState(state: unknown, sensitive: ReadonlySet<unknown>): unknown {
  if (sensitive.has(state)) return MASK
  if (Array.isArray(state)) return state.map((one) => maskedState(one, sensitive))
  if (typeof state !== 'object' || state === null) return state
  return Object.fromEntries(Object.entries(state).map(([key, one]) => [key, maskedState(one, sensitive)]))
}

/**
 * Copies of events' data with sealed values opened; those whose key was destroyed read as erased.
 * @returns the copies in order, and how many values were opened.
 */
export async function opened(
  personalData: Pick<PersonalData, 'open'>,
  events: readonly TypedData[],
): Promise<{ readonly data: readonly unknown[]; readonly revealed: number }> {
  const items: { place: SensitiveValue; value: Sealed; context: string }[] = []
  const data = events.map((event) => {
    const copy = structuredClone(event.data)
    for (const place of sensitiveValues(event.schema, copy)) {
      const { sealed, value } = place
      if (sealed && isSealed(value)) items.push({ place, value, context: sealed.boundTo(place) })
    }
    return copy
  })
  const texts = await openAll(personalData, items)
  for (const [index, { place }] of items.entries()) place.holder[place.key] = texts[index]
  return { data, revealed: items.length }
}

/** The sealed values of one event. @param data what its sealed values are bound to, and these. */
export async function openedOne<Data>(
  personalData: Pick<PersonalData, 'open'>,
  { schema }: Pick<EventType, 'schema'>,
  data: Data,
): Promise<Data> {
  return (await opened(personalData, [{ schema, data }])).data[0] as Data
}

/** Opens values all at once; when one of them does not open, one by one, so that the others do. */
export async function openAll(
  personalData: Pick<PersonalData, 'open'>,
  items: readonly { readonly value: Sealed; readonly context: string }[],
): Promise<readonly string[]> {
  if (items.length === 0) return []
  try {
    return await personalData.open(items)
  } catch (error) {
    if (!isUnreadable(error)) throw error
  }
  const texts: string[] = []
  for (const item of items) {
    try {
      texts.push((await personalData.open([item]))[0]!)
    } catch (error) {
      if (!isUnreadable(error)) throw error
      texts.push(UNREADABLE)
    }
  }
  return texts
}

/** Told apart from a database that does not answer, which must not read as a tampered value. */
function isUnreadable(error: unknown): boolean {
  return error instanceof Error && error.name === 'SealedValueError'
}
