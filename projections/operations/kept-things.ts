import { keptThings as table } from '../../application/operations/kept-things-table.ts'
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
import { changing, projection } from '../runtime/projection.ts'

const ofIntake = changing(table, ({ intake_id }: { intake_id: string }) => ['intake', intake_id] as const)
const ofNotice = changing(
  table,
  ({ notice_id }: { notice_id: string }) => ['processor_notice', notice_id] as const,
)

/** What operators list and nothing else asks for; what it is stands in the log. */
export const keptThings = projection({
  name: 'kept-things',
  version: 1,
  tables: [table],
  readersWait: true,
  handlers: (on) => [
    on(IntakeReceived, {
      apply: ({ data, position: seq }, { kept_things }) =>
        kept_things.put({ ...data, kind: 'intake', id: data.intake_id, status: 'received', seq }),
    }),
    // a refused one is not there
    ofIntake(IntakeUnfinished, (_event, row) => (row ? { status: 'unfinished' } : null)),
    ofIntake(IntakeCompleted, () => ({ status: 'completed' })),
    on(IntakeRefused, {
      apply: ({ data }, { kept_things }) => kept_things.remove('intake', data.intake_id),
    }),
    on(FinancingSessionCreated, {
      apply: ({ data, position: seq }, { kept_things }) =>
        kept_things.put({ ...data, kind: 'financing_session', id: data.financing_session_id, seq }),
    }),
    on(DebitCollectionAccepted, {
      apply: ({ data, position: seq }, { kept_things }) =>
        kept_things.put({ ...data, kind: 'debit_collection', id: data.collection_id, seq }),
    }),
    on(ProcessorNoticeNotUnderstood, {
      apply: ({ data, position: seq }, { kept_things }) => {
        const { notice_id: id, tenant_id, environment, employer_id } = data
        const status = 'not_understood'
        kept_things.put({ kind: 'processor_notice', id, tenant_id, environment, employer_id, status, seq })
      },
    }),
    ofNotice(ProcessorNoticeCarriedOut, () => ({ status: 'carried_out' })),
    ofNotice(ProcessorNoticeResolved, () => ({ status: 'resolved' })),
  ],
})
