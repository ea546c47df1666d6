import { z } from 'zod'
import { resolveNotice } from '../../application/payments/parked-notices.ts'
import { isId } from '../../domain/kernel/ids.ts'
import { processorKind } from '../../domain/payments/processor-kinds.ts'
import {
  type ParkedNotice,
  PROCESSOR_NOTICE_STATUSES,
  processorNotice,
} from '../../domain/payments/processor-notice.ts'
import { accepted } from '../endpoints/endpoint.ts'
import { id, idOf, optional, text } from '../endpoints/fields.ts'
import { contextOf, endpoint, loaded, notFound, operator } from './api.ts'
import { shownTime } from './values.ts'

const Notice = z
  .object({
    notice_id: id(),
    status: z.enum(PROCESSOR_NOTICE_STATUSES),
    processor: processorKind,
    processor_notice_id: z.string().nullable().describe('Its id at the processor'),
    type: z.string().nullable(),
    version: z.string().nullable().describe("Of the processor's API that it was written in"),
    about_id: id().describe('The payment link, payment session or subscription that it names'),
    note: z.string().nullable(),
    received_at: shownTime(),
  })
  .meta({ id: 'ProcessorNotice' })

const params = z.object({ notice_id: idOf('processor notice') })
const NONE = { 404: 'There is no such processor notice' } as const

export const processorNoticeEndpoints = [
  endpoint({
    operation: 'showProcessorNotice',
    method: 'GET',
    path: '/processor-notices/{notice_id}',
    summary: 'Show a notice of the card processor that was not understood',
    access: operator,
    params,
    answers: { 200: Notice },
    errors: NONE,
    command: { name: 'processor-notices show' },
    handle: async ({ host, params }) =>
      shown(await loaded(host, processorNotice, params.notice_id, 'processor notice')),
  }),
  endpoint({
    operation: 'resolveProcessorNotice',
    method: 'POST',
    path: '/processor-notices/{notice_id}/resolve',
    summary: 'Take note of a notice that was not understood: a person has seen to it',
    description: 'It is not read again, and what was kept of it is deleted. Again it changes nothing.',
    access: operator,
    params,
    body: z.object({ note: optional(text()).describe('Names nobody: it is kept as it is') }),
    answers: { 200: Notice },
    errors: NONE,
    command: { name: 'processor-notices resolve' },
    async handle(call) {
      const { notice_id } = call.params
      if (!isId(notice_id)) throw notFound(NONE[404])
      const { app } = call.host
      return shown(accepted(await resolveNotice(app, notice_id, call.body.note, contextOf(call))))
    },
  }),
]

function shown(notice: ParkedNotice) {
  const { notice_id, status, processor, processor_notice_id, type, version, about_id, note, at } = notice
  return {
    notice_id,
    status,
    processor,
    processor_notice_id,
    type,
    version,
    about_id,
    note,
    received_at: at,
  }
}
