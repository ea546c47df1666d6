import { type KeptKind, keptThings as table } from '../../application/operations/kept-things-table.ts'
import { DebitCollectionAccepted } from '../../domain/banking/debits/debit-collection.ts'
import { FinancingSessionCreated } from '../../domain/payments/financing/financing-session-events.ts'
import {
  ProcessorNoticeCarriedOut,
  ProcessorNoticeNotUnderstood,
  ProcessorNoticeResolved,
} from '../../domain/payments/processor/processor-notice.ts'
import {
  IntakeCompleted,
  IntakeReceived,
  IntakeRefused,
  IntakeUnfinished,
} from '../../domain/policies/intake.ts'
import { projection } from '../runtime/projection.ts'

const row = (kind: KeptKind, id: string) => ({ kept_things: [[kind, id]] }) as const

/** What operators list and nothing else asks for; what it is stands in the log. */
export const keptThings = projection({
  name: 'kept-things',
  version: 1,
  tables: [table],
  readersWait: true,
  handlers: (on) => [
    on(IntakeReceived, {
      apply: ({ data, position: seq }, { kept_things }) => {
        const { intake_id: id, tenant_id, environment, employer_id } = data
        kept_things.put({ kind: 'intake', id, tenant_id, environment, employer_id, status: 'received', seq })
      },
    }),
    on(IntakeUnfinished, {
      reads: ({ data }) => row('intake', data.intake_id),
      apply: ({ data: { intake_id } }, { kept_things }) => {
        // a refused one is not there
        if (kept_things.get('intake', intake_id))
          kept_things.change(['intake', intake_id], { status: 'unfinished' })
      },
    }),
    on(IntakeCompleted, {
      reads: ({ data }) => row('intake', data.intake_id),
      apply: ({ data }, { kept_things }) =>
        kept_things.change(['intake', data.intake_id], { status: 'completed' }),
    }),
    on(IntakeRefused, {
      apply: ({ data }, { kept_things }) => kept_things.remove('intake', data.intake_id),
    }),
    on(FinancingSessionCreated, {
      apply: ({ data, position: seq }, { kept_things }) => {
        const { financing_session_id: id, tenant_id, environment, employer_id } = data
        kept_things.put({ kind: 'financing_session', id, tenant_id, environment, employer_id, seq })
      },
    }),
    on(DebitCollectionAccepted, {
      apply: ({ data, position: seq }, { kept_things }) => {
        const { collection_id: id, tenant_id, environment, employer_id } = data
        kept_things.put({ kind: 'debit_collection', id, tenant_id, environment, employer_id, seq })
      },
    }),
    on(ProcessorNoticeNotUnderstood, {
      apply: ({ data, position: seq }, { kept_things }) => {
        const { notice_id: id, tenant_id, environment, employer_id } = data
        const status = 'not_understood'
        kept_things.put({ kind: 'processor_notice', id, tenant_id, environment, employer_id, status, seq })
      },
    }),
    on(ProcessorNoticeCarriedOut, {
      reads: ({ data }) => row('processor_notice', data.notice_id),
      apply: ({ data }, { kept_things }) =>
        kept_things.change(['processor_notice', data.notice_id], { status: 'carried_out' }),
    }),
    on(ProcessorNoticeResolved, {
      reads: ({ data }) => row('processor_notice', data.notice_id),
      apply: ({ data }, { kept_things }) =>
        kept_things.change(['processor_notice', data.notice_id], { status: 'resolved' }),
    }),
  ],
})
