import { z } from 'zod'
import { listBankFiles } from '../../../application/banking/files/list-files.ts'
import { lookAtFolders } from '../../../application/banking/files/look-at-folders.ts'
import { decideFile } from '../../../application/banking/files/operator-decisions.ts'
import {
  answerOf,
  BANK_FILE_ANSWERS,
  BANK_FILE_STATUSES,
  type BankFile,
  bankFile,
} from '../../../domain/banking/files/bank-file.ts'
import { Answer, accepted } from '../../endpoints/endpoint.ts'
import { id, ofOne, optional, text, wholeNumber, word } from '../../endpoints/fields.ts'
import { listOf, narrowing } from '../../endpoints/lists.ts'
import { BANK_FILE_STATES } from '../../endpoints/state-codes.ts'
import { conflict, contextOf, endpoint, loaded } from '../host/api.ts'
import { handleList } from '../host/lists.ts'
import { forSecond, PendingAction } from '../host/second-operator.ts'
import { shownTime } from '../host/values.ts'

const Row = z
  .object({
    file_id: id(),
    name: z.string().describe('In the outbox; empty until it is recorded'),
    status: z.enum(BANK_FILE_STATUSES),
    answer: z.enum(BANK_FILE_ANSWERS).describe('How the bank answered to it'),
    batch_closes_at: shownTime(),
    first_trace: z.string(),
    last_trace: z.string(),
    debit_cents: z.int(),
    credit_cents: z.int(),
    recorded_at: shownTime(),
  })
  .meta({ id: 'BankFileRow' })
const Batch = z.object({
  batch_number: z.int(),
  description: z.string(),
  entry_date: z.string(),
  service_class: z.int(),
  entries: z.int(),
  debit_cents: z.int(),
  credit_cents: z.int(),
  outcome: z.enum(['accepted', 'rejected']).nullable(),
  reason: z.string().nullable(),
})
const File = z
  .object({
    file_id: id(),
    name: z.string().nullable().describe('Null until it is recorded'),
    status: z.enum(BANK_FILE_STATUSES),
    answer: z.enum(BANK_FILE_ANSWERS),
    batch_closes_at: shownTime(),
    part: z.int().describe('Which file of its batch it is, from 0'),
    sha256: z.string().nullable(),
    bytes: z.int().nullable(),
    first_trace: z.string().nullable(),
    last_trace: z.string().nullable(),
    debit_cents: z.int().nullable(),
    credit_cents: z.int().nullable(),
    batches: z.array(Batch).readonly(),
    note: z.string().nullable(),
    updated_at: shownTime(),
  })
  .meta({ id: 'BankFile' })

const one = ofOne('file_id', 'bank file')
const errors = {
  ...one.errors,
  409: 'The verb does not fit how the file stands; nothing is changed',
} as const
const note = optional(text()).describe('Names nobody: it is kept as it is')
const batch_number = optional(wholeNumber().min(1)).describe('Only this batch; absent: the whole file')

export const bankFileEndpoints = [
  endpoint({
    operation: 'listBankFiles',
    route: 'GET /bank-files',
    summary: 'List files for the bank, newest first',
    ...listOf(Row, { status: narrowing(word(...BANK_FILE_STATUSES)) }),
    columns: 'file_id name status answer debits:debit_cents recorded_at',
    handle: handleList(listBankFiles, (row) => Row.parse(row)),
  }),
  endpoint({
    operation: 'lookAtBankFolders',
    route: 'POST /bank-files/look',
    summary: 'Look into the folders of the bank now: take what has come, see what was fetched',
    asksOutside: true,
    description: 'Else by itself, every `NACHA_POLL_SECONDS`. What was taken is carried out after that.',
    body: z.object({}),
    answers: {
      200: z
        .object({
          taken: z.int(),
          fetched: z.int(),
          uncertain: z.int().describe('Files that are gone without having been fetched'),
        })
        .meta({ id: 'BankFolderLook' }),
    },
    errors: { 409: 'There are no folders: BANK_RAIL is not nacha', 502: 'A folder cannot be used' },
    async handle(call) {
      const { app } = call.host
      const { bankFiles: files } = app
      if (files === null) throw conflict('There are no folders of a bank: BANK_RAIL is not nacha')
      return lookAtFolders({ ...app, bankFiles: files }, contextOf(call))
    },
  }),
  endpoint({
    operation: 'showBankFile',
    route: 'GET /bank-files/{file_id}',
    summary: 'Show a file for the bank',
    ...one,
    answers: { 200: File },
    handle: async ({ host, params }) => shown(await loaded(host, bankFile, params.file_id, 'bank file')),
  }),
  endpoint({
    operation: 'exposeBankFileAgain',
    route: 'POST /bank-files/{file_id}/expose-again',
    summary: 'Decide that the bank does not have an uncertain file: it is put into the outbox again',
    description:
      'Ask the bank first: if it has the file, every debit in it is taken twice. From the day on which its first entries ' +
      'take effect it is 409: reject it instead.',
    ...one,
    body: z.object({ note }),
    answers: { 200: File, 202: PendingAction },
    errors: {
      ...errors,
      429: 'Too many requests without the token of an operator; or as many files were made on that day as their names can tell apart',
    },
    refuses: { 409: [...BANK_FILE_STATES, 'bank_file_too_late'], 429: ['no_file_modifier'] },
    async handle(call) {
      const { file_id } = call.params
      const { note } = call.body
      if (!call.host.services.needsSecondOperator) {
        return new Answer(200, await decided(call, { type: 'ExposeAgain', note }))
      }
      const file = await loaded(call.host, bankFile, file_id, 'bank file')
      accepted(bankFile.decide({ type: 'ExposeAgain', note, at: call.host.app.clock.now() }, file))
      return forSecond(call, { operation: 'exposeBankFileAgain', targets: [file_id], reason: note })
    },
  }),
  endpoint({
    operation: 'treatBankFileAsSent',
    route: 'POST /bank-files/{file_id}/treat-as-sent',
    summary: 'Decide that the bank has an uncertain file: it is not looked for any more',
    ...one,
    body: z.object({ note }),
    answers: { 200: File },
    errors,
    refuses: {
      409: BANK_FILE_STATES,
    },
    handle: (call) => decided(call, { type: 'TreatAsSent', note: call.body.note }),
  }),
  endpoint({
    operation: 'acknowledgeBankFile',
    route: 'POST /bank-files/{file_id}/acknowledge',
    summary: 'Record that the bank took a file, or a batch of it: its debits are submitted',
    description: 'For banks that do not answer with files of their own.',
    ...one,
    body: z.object({ batch_number }),
    answers: { 200: File },
    errors,
    refuses: { 404: ['batch_not_found'], 409: [...BANK_FILE_STATES, 'batch_answered'] },
    handle: (call) => answered(call, 'accepted', call.body.batch_number, null),
  }),
  endpoint({
    operation: 'rejectBankFile',
    route: 'POST /bank-files/{file_id}/reject',
    summary: 'Record that the bank would not take a file, or a batch of it: its debits have failed',
    ...one,
    body: z.object({ batch_number, reason: optional(text(200)) }),
    answers: { 200: File },
    errors,
    refuses: {
      404: ['batch_not_found'],
      409: [...BANK_FILE_STATES, 'batch_answered'],
    },
    handle: (call) => answered(call, 'rejected', call.body.batch_number, call.body.reason),
  }),
]

type FileCall = Parameters<typeof contextOf>[0] & { readonly params: { readonly file_id: string } }

function answered(
  call: FileCall,
  outcome: 'accepted' | 'rejected',
  batchNumber: number | null,
  reason: string | null,
) {
  return decided(call, { type: 'Answer', batchNumber, outcome, reason, reportId: null })
}

type Decision = Parameters<typeof decideFile>[2]
type Untimed<Command> = Command extends unknown ? Omit<Command, 'at'> : never

async function decided(call: FileCall, decision: Untimed<Decision>) {
  const { app } = call.host
  const command = { ...decision, at: app.clock.now() } as Decision
  return shown(accepted(await decideFile(app, call.params.file_id, command, contextOf(call))))
}

const UNRECORDED = {
  ...{ name: null, sha256: null, bytes: null, first_trace: null, last_trace: null },
  ...{ debit_cents: null, credit_cents: null },
}
function shown(file: BankFile) {
  return { ...UNRECORDED, ...file.content, ...file, answer: answerOf(file) }
}
