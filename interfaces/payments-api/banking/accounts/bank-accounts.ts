import { z } from 'zod'
import {
  bankAccountOf,
  changeBankAccount,
  createBankAccount,
  deleteBankAccount,
  listBankAccounts,
  shownBankAccount,
} from '../../../../application/banking/accounts/bank-accounts.ts'
import { withUser } from '../../../../application/banking/accounts/users.ts'
import { ACH_ACCOUNT_STATUSES } from '../../../../domain/banking/accounts/ach-account.ts'
import { bankAccount, CONNECTION_TYPES } from '../../../../domain/banking/accounts/bank-account.ts'
import { isRejection } from '../../../../domain/kernel/rejection.ts'
import { create, created } from '../../../endpoints/creations.ts'
import { accepted } from '../../../endpoints/endpoint.ts'
import { id, ofOne, optionalFlagText, reference, word } from '../../../endpoints/fields.ts'
import { listed, listOf, narrowing } from '../../../endpoints/lists.ts'
import { changeOf } from '../../../endpoints/repeating.ts'
import { contextOf, endpoint, keyed } from '../../host/api.ts'
import {
  BankAccount,
  bankAccountChange,
  changing,
  newBankAccount,
  showBankAccount,
} from './bank-account-schemas.ts'

const one = ofOne('bank_account_id', 'bank account')
const OWNER = 'Employer or carrier is not there; the message names which'

/** Bank accounts of the metadata layer: for display and association. */
export const bankAccountEndpoints = [
  endpoint({
    operation: 'createBankAccount',
    route: 'POST /bank-accounts',
    summary: 'Create a bank account of the metadata layer',
    description:
      'For display and association: it holds no numbers, and moves no money. `primary` takes the place of the account that ' +
      'was primary of the same employer, else carrier, else user.',
    body: newBankAccount,
    ...created(BankAccount),
    errors: { 404: OWNER },
    refuses: { 403: ['owner_out_of_scope'], 404: ['carrier_not_found', 'employer_not_found'] },
    handle(call) {
      const { host, caller, body } = call
      return create(keyed(call), 'POST /bank-accounts', {
        create: (context) => createBankAccount(host.app, caller.client, body, context),
        // as it began, also when it is answered again
        show: async (account) =>
          showBankAccount({ account: await withUser(host.app, account), isPrimary: account.primary }),
        repeated: bankAccount,
      })
    },
  }),
  endpoint({
    operation: 'listBankAccounts',
    route: 'GET /bank-accounts',
    summary: 'List bank accounts of the metadata layer, newest first',
    ...listOf(BankAccount, {
      employer_id: narrowing(reference()),
      carrier_id: narrowing(reference()),
      connection_type: narrowing(word(...CONNECTION_TYPES)),
      status: narrowing(word(...ACH_ACCOUNT_STATUSES)),
      primary: narrowing(optionalFlagText()),
    }),
    handle: ({ host: { app }, caller, query }) =>
      listed(query, (wanted) => listBankAccounts(app, caller.client, query, wanted), showBankAccount),
  }),
  endpoint({
    operation: 'showBankAccount',
    route: 'GET /bank-accounts/{bank_account_id}',
    summary: 'Show a bank account of the metadata layer',
    ...one,
    answers: { 200: BankAccount },
    refuses: { 403: ['bank_account_out_of_scope'] },
    async handle({ host: { app }, caller, params }) {
      const account = accepted(await bankAccountOf(app, caller.client, params.bank_account_id))
      return showBankAccount(await shownBankAccount(app, account))
    },
  }),
  endpoint({
    operation: 'changeBankAccount',
    route: 'PATCH /bank-accounts/{bank_account_id}',
    summary: 'Change fields of a bank account of the metadata layer',
    description:
      'Null for `employer_id` or `carrier_id` ends the association. One that moves to another owner is not primary there, ' +
      'unless `primary` says so.',
    ...one,
    body: changing(BankAccount, bankAccountChange),
    example: { name: 'Payroll account' },
    answers: { 200: BankAccount },
    errors: { 404: `There is no such bank account. ${OWNER}` },
    refuses: {
      403: ['bank_account_out_of_scope', 'owner_out_of_scope'],
      404: ['carrier_not_found', 'employer_not_found'],
    },
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
    route: 'PATCH /bank-accounts/{bank_account_id}/default',
    summary: 'Make a bank account of the metadata layer the primary one of its owner',
    ...one,
    body: z.object({ primary: z.literal(true, 'must be true') }),
    answers: { 200: BankAccount },
    refuses: { 403: ['bank_account_out_of_scope'] },
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
    route: 'DELETE /bank-accounts/{bank_account_id}',
    summary: 'Delete a bank account of the metadata layer',
    description: 'No other account becomes primary in its place.',
    ...one,
    answers: { 200: z.object({ _id: id(), deleted: z.literal(true) }).meta({ id: 'DeletedBankAccount' }) },
    refuses: { 403: ['bank_account_out_of_scope'] },
    async handle(call) {
      const { app } = call.host
      const account = accepted(await bankAccountOf(app, call.caller.client, call.params.bank_account_id))
      const after = await deleteBankAccount(app, account, contextOf(call))
      return isRejection(after) ? after : { _id: account.bank_account_id, deleted: true as const }
    },
  }),
]
