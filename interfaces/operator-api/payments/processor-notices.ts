import { z } from 'zod'
import { listProcessorNotices } from '../../../application/operations/list-kept-things.ts'
import { resolveNotice } from '../../../application/payments/parked-notices.ts'
import { processorKind } from '../../../domain/payments/processor/processor-kinds.ts'
import {
  type ParkedNotice,
  PROCESSOR_NOTICE_STATUSES,
  processorNotice,
} from '../../../domain/payments/processor/processor-notice.ts'
import { accepted } from '../../endpoints/endpoint.ts'
import { id, ofOne, word } from '../../endpoints/fields.ts'
import { listOf, narrowing } from '../../endpoints/lists.ts'
import { contextOf, endpoint, loaded } from '../host/api.ts'
import { handleList, scope } from '../host/lists.ts'
import { owner, shownTime, withNote } from '../host/values.ts'

const Notice = z
  .object({
    notice_id: id(),
    ...owner,
    employer_id: id(),
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

const one = ofOne('notice_id', 'processor notice')

export const processorNoticeEndpoints = [
  endpoint({
    operation: 'listProcessorNotices',
    route: 'GET /processor-notices',
    summary: 'List notices of the card processor that were not understood at first, newest first',
    ...listOf(Notice, {
      ...scope,
      employer_id: narrowing(id()),
      status: narrowing(word(...PROCESSOR_NOTICE_STATUSES)),
    }),
    columns: 'notice_id received_at environment status processor type about_id',
    handle: handleList(listProcessorNotices, shown),
  }),
  endpoint({
    operation: 'showProcessorNotice',
    route: 'GET /processor-notices/{notice_id}',
    summary: 'Show a notice of the card processor that was not understood',
    ...one,
    answers: { 200: Notice },
    handle: async ({ host, params }) =>
      shown(await loaded(host, processorNotice, params.notice_id, 'processor notice')),
  }),
  endpoint({
    operation: 'resolveProcessorNotice',
    route: 'POST /processor-notices/{notice_id}/resolve',
    summary: 'Take note of a notice that was not understood: a person has seen to it',
    description:
      'The notice is not read again, and what was kept of it is deleted. Again it changes nothing.',
    ...one,
    body: withNote,
    answers: { 200: Notice },
    async handle(call) {
      const { host, params, body } = call
      return shown(accepted(await resolveNotice(host.app, params.notice_id, body.note, contextOf(call))))
    },
  }),
]

function shown({ at, ...notice }: ParkedNotice) {
  return { ...notice, received_at: at }
}
