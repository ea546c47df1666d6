import { z } from 'zod'
import {
  bankAccountOf,
  changeBankAccount,
  createBankAccount,
  deleteBankAccount,
  listBankAccounts,
  shownBankAccount,
} from '../../application/banking/bank-accounts.ts'
import { withUser } from '../../application/banking/users.ts'
import { ACH_ACCOUNT_STATUSES } from '../../domain/banking/ach-account.ts'
import { bankAccount, CONNECTION_TYPES } from '../../domain/banking/bank-account.ts'
import { isRejection } from '../../domain/kernel/rejection.ts'
import { create, created, REPEATED } from '../endpoints/creations.ts'
import { accepted } from '../endpoints/endpoint.ts'
import { id, idOf, optionalFlagText, word } from '../endpoints/fields.ts'
import { listAnswer, page, pageOf, pagination } from '../endpoints/lists.ts'
import { changeOf } from '../endpoints/repeating.ts'
import { contextOf, endpoint, keyed, partner } from './api.ts'
import {
  BankAccount,
  bankAccountChange,
  changing,
  newBankAccount,
  showBankAccount,
} from './bank-account-schemas.ts'

const params = z.object({ bank_account_id: idOf('bank account') })
const NONE = { 404: 'There is no such bank account' } as const
const OWNER = 'Employer or carrier is not there; the message names which'

/** Bank accounts of the metadata layer: for display and association. */
export const bankAccountEndpoints = [
  endpoint({
    operation: 'createBankAccount',
    method: 'POST',
    path: '/bank-accounts',
    summary: 'Create a bank account of the metadata layer',
    description:
      'For display and association: it holds no numbers, and moves no money. `primary` takes the place of the account that ' +
      'was primary of the same employer, else carrier, else user.',
    access: partner,
    body: newBankAccount,
    idempotent: REPEATED.answered,
    answers: created(BankAccount),
    errors: { 404: OWNER },
    handle(call) {
      const { host, caller, body } = call
      return create(keyed(call), 'POST /bank-accounts', {
        create: (context) => createBankAccount(host.app, caller.client, body, context),
        idOf: ({ bank_account_id }) => bank_account_id,
        // as it began, also when it is answered again
        show: async (account) =>
          showBankAccount({ account: await withUser(host.app, account), isPrimary: account.primary }),
        repeated: bankAccount,
      })
    },
  }),
  endpoint({
    operation: 'listBankAccounts',
    method: 'GET',
    path: '/bank-accounts',
    summary: 'List bank accounts of the metadata layer, newest first',
    access: partner,
    query: z.object({
      ...page,
      employer_id: id().optional(),
      carrier_id: id().optional(),
      connection_type: word(...CONNECTION_TYPES).optional(),
      status: word(...ACH_ACCOUNT_STATUSES).optional(),
      primary: optionalFlagText(),
    }),
    answers: { 200: z.array(BankAccount).readonly() },
    pagination,
    async handle({ host: { app }, caller, query }) {
      const wanted = pageOf(query)
      const { employer_id = null, carrier_id = null, connection_type = null, status = null } = query
      const filter = {
        employerId: employer_id,
        carrierId: carrier_id,
        connectionType: connection_type,
        status,
        primary: query.primary ?? null,
      }
      const { items, total } = await listBankAccounts(app, caller.client, filter, wanted)
      return listAnswer(wanted, { items: items.map(showBankAccount), total })
    },
  }),
  endpoint({
    operation: 'showBankAccount',
    method: 'GET',
    path: '/bank-accounts/{bank_account_id}',
    summary: 'Show a bank account of the metadata layer',
    access: partner,
    params,
    answers: { 200: BankAccount },
    errors: NONE,
    async handle({ host: { app }, caller, params }) {
      const account = accepted(await bankAccountOf(app, caller.client, params.bank_account_id))
      return showBankAccount(await shownBankAccount(app, account))
    },
  }),
  endpoint({
    operation: 'changeBankAccount',
    method: 'PATCH',
    path: '/bank-accounts/{bank_account_id}',
    summary: 'Change fields of a bank account of the metadata layer',
    description:
      'Null for `employer_id` or `carrier_id` ends the association. One that moves to another owner is not primary there, ' +
      'unless `primary` says so.',
    access: partner,
    params,
    body: changing(BankAccount, bankAccountChange),
    answers: { 200: BankAccount },
    errors: { 404: `There is no such bank account. ${OWNER}` },
    async handle(call) {
      const { app } = call.host
      const { client } = call.caller
      const account = accepted(await bankAccountOf(app, client, call.params.bank_account_id))
      const wanted = changeOf(bankAccountChange, call, showBankAccount(await shownBankAccount(app, account)))
      const after = await changeBankAccount(app, client, account, wanted, contextOf(call))
      return isRejection(after) ? after : showBankAccount(after)
    },
  }),
  endpoint({
    operation: 'makeBankAccountDefault',
    method: 'PATCH',
    path: '/bank-accounts/{bank_account_id}/default',
    summary: 'Make a bank account of the metadata layer the primary one of its owner',
    access: partner,
    params,
    body: z.object({ primary: z.literal(true, 'must be true') }),
    answers: { 200: BankAccount },
    errors: NONE,
    async handle(call) {
      const { app } = call.host
      const { client } = call.caller
      const account = accepted(await bankAccountOf(app, client, call.params.bank_account_id))
      const after = await changeBankAccount(app, client, account, { primary: true }, contextOf(call))
      return isRejection(after) ? after : showBankAccount(after)
    },
  }),
  endpoint({
    operation: 'deleteBankAccount',
    method: 'DELETE',
    path: '/bank-accounts/{bank_account_id}',
    summary: 'Delete a bank account of the metadata layer',
    description: 'No other account becomes primary in its place.',
    access: partner,
    params,
    answers: { 200: z.object({ _id: id(), deleted: z.literal(true) }).meta({ id: 'DeletedBankAccount' }) },
    errors: NONE,
    async handle(call) {
      const { app } = call.host
      const account = accepted(await bankAccountOf(app, call.caller.client, call.params.bank_account_id))
      const after = await deleteBankAccount(app, account, contextOf(call))
      return isRejection(after) ? after : { _id: account.bank_account_id, deleted: true as const }
    },
  }),
]
