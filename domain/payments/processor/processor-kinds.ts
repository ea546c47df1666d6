import { z } from 'zod'

/** Card processors whose ids are kept. An id means nothing to another one. */
export const processorKind = z.enum(['simulated', 'stripe'])
export type ProcessorKind = z.output<typeof processorKind>

/** Adds to a stored event whose an id in it is, which was not kept at first. */
export function withProcessor(field: string) {
  return (raw: unknown): unknown => {
    const data = raw as Readonly<Record<string, unknown>>
    const processor: ProcessorKind = /^[a-z]+_sim_/.test(String(data[field])) ? 'simulated' : 'stripe'
    return { ...data, processor }
  }
}
