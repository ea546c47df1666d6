import { z } from 'zod'
import {
  startVerification,
  verifyAmounts,
} from '../../../../application/banking/accounts/account-verification.ts'
import {
  achAccountOf,
  changeAchAccount,
  createAchAccount,
  deleteAchAccount,
  shownAchAccount,
} from '../../../../application/banking/accounts/ach-accounts.ts'
import { listAchAccounts } from '../../../../application/banking/accounts/list-ach-accounts.ts'
import { ACH_ACCOUNT_STATUSES, achAccount } from '../../../../domain/banking/accounts/ach-account.ts'
import { CONNECTION_TYPES } from '../../../../domain/banking/accounts/bank-account.ts'
import { isRejection } from '../../../../domain/kernel/rejection.ts'
import { create, created, once, REPEATED } from '../../../endpoints/creations.ts'
import { accepted } from '../../../endpoints/endpoint.ts'
import { id, ofOne, reference, word, wrongType } from '../../../endpoints/fields.ts'
import { listed, listOf, narrowing } from '../../../endpoints/lists.ts'
import { changeOf } from '../../../endpoints/repeating.ts'
import { contextOf, endpoint, keyed } from '../../host/api.ts'
import {
  AchAccount,
  AchAccountVerification,
  achAccountChange,
  changing,
  newAchAccount,
  showAchAccount,
} from './bank-account-schemas.ts'

const one = ofOne('ach_account_id', 'ACH account')
const AMOUNT = 'must be a whole number of 1 to 99'
const amount = () => z.int(wrongType(AMOUNT)).min(1, AMOUNT).max(99, AMOUNT)

/** ACH accounts: what money is moved with. Full numbers are taken once and never shown. */
export const achAccountEndpoints = [
  endpoint({
    operation: 'createAchAccount',
    route: 'POST /bank-accounts/ach',
    summary: 'Create an ACH account from a routing and an account number',
    description:
      'The account is `unverified` until micro-deposits or an operator verify it; debits of it are taken meanwhile. Of its numbers the ' +
      'last four digits are shown. The same numbers again are another account, which is `disabled` at once where a bank ' +
      'returned a debit of them with a code that disables. `is_primary` takes the place of the ' +
      "owner's account that was primary.",
    body: newAchAccount,
    ...created(AchAccount),
    errors: { 404: '`owner_id` names no employer or carrier of this account' },
    refuses: {
      400: ['number_in_name'],
      403: ['owner_out_of_scope'],
      404: ['carrier_not_found', 'employer_not_found'],
    },
    handle(call) {
      const { host, caller, body } = call
      return create(keyed(call), 'POST /bank-accounts/ach', {
        create: (context) => createAchAccount(host.app, caller.client, { ...body, linked: null }, context),
        // as it began, also when it is answered again
        show: (account) => showAchAccount({ account, isPrimary: account.is_primary }),
        repeated: achAccount,
      })
    },
  }),
  endpoint({
    operation: 'listAchAccounts',
    route: 'GET /bank-accounts/ach',
    summary: 'List ACH accounts, newest first',
    ...listOf(AchAccount, {
      owner_id: narrowing(reference()),
      owner_type: narrowing(word('employer', 'carrier')),
      status: narrowing(word(...ACH_ACCOUNT_STATUSES)),
      connection_type: narrowing(word(...CONNECTION_TYPES)),
    }),
    handle: ({ host: { app }, caller, query }) =>
      listed(query, (wanted) => listAchAccounts(app, caller.client, query, wanted), showAchAccount),
  }),
  endpoint({
    operation: 'showAchAccount',
    route: 'GET /bank-accounts/ach/{ach_account_id}',
    summary: 'Show an ACH account',
    ...one,
    answers: { 200: AchAccount },
    refuses: { 403: ['ach_account_out_of_scope'] },
    async handle({ host: { app }, caller, params }) {
      const account = accepted(await achAccountOf(app, caller.client, params.ach_account_id))
      return showAchAccount(await shownAchAccount(app, account))
    },
  }),
  endpoint({
    operation: 'changeAchAccount',
    route: 'PATCH /bank-accounts/ach/{ach_account_id}',
    summary: 'Change fields of an ACH account; its numbers and its owner stay',
    ...one,
    body: changing(AchAccount, achAccountChange),
    example: { nickname: 'Payroll account' },
    answers: { 200: AchAccount },
    refuses: {
      400: ['number_in_name'],
      403: ['ach_account_out_of_scope'],
    },
    async handle(call) {
      const { app } = call.host
      const account = accepted(await achAccountOf(app, call.caller.client, call.params.ach_account_id))
      const wanted = changeOf(achAccountChange, call, showAchAccount(await shownAchAccount(app, account)))
      const after = await changeAchAccount(app, account, wanted, contextOf(call))
      return isRejection(after) ? after : showAchAccount(after)
    },
  }),
  endpoint({
    operation: 'deleteAchAccount',
    route: 'DELETE /bank-accounts/ach/{ach_account_id}',
    summary: 'Delete an ACH account: it is hidden, and nothing new is debited from it',
    description:
      'Debits that were created go their way. The numbers are removed once none of them can be returned any more. No other ' +
      'account becomes primary in its place.',
    ...one,
    answers: { 200: z.object({ _id: id(), deleted: z.literal(true) }).meta({ id: 'DeletedAchAccount' }) },
    refuses: { 403: ['ach_account_out_of_scope'] },
    async handle(call) {
      const { app } = call.host
      const account = accepted(await achAccountOf(app, call.caller.client, call.params.ach_account_id))
      const after = await deleteAchAccount(app, account, contextOf(call))
      return isRejection(after) ? after : { _id: account.ach_account_id, deleted: true as const }
    },
  }),
  endpoint({
    operation: 'sendMicroDeposits',
    route: 'POST /bank-accounts/ach/{ach_account_id}/micro-deposits',
    summary: 'Start to verify an ACH account by two credits under one dollar',
    description:
      'The deposits are shown on its statement as `ACCTVERIFY` within a few banking days. Tell both amounts with `verify`: there are ' +
      '3 tries, within 14 days. Afterwards another verification can be started; where a bank pays them, 3 within 14 days for ' +
      'all accounts with the same numbers.',
    ...one,
    body: z.object({}),
    idempotent: REPEATED.answered,
    answers: { 200: AchAccountVerification },
    errors: {
      ...one.errors,
      409: 'The account is verified or disabled, deposits are on their way already, or they were too often',
    },
    refuses: {
      403: ['ach_account_out_of_scope'],
      409: [
        'ach_account_disabled',
        'ach_account_verified',
        'too_many_verifications',
        'verification_under_way',
      ],
    },
    async handle(call) {
      const { host, caller, params } = call
      const account = accepted(await achAccountOf(host.app, caller.client, params.ach_account_id))
      const { ach_account_id: _id } = account
      return once(keyed(call), `POST /bank-accounts/ach/micro-deposits ${_id}`, async (context) => {
        const after = await startVerification(host.app, account, context)
        if (isRejection(after)) return after
        const { tries_left, expires_at } = after.verification!
        return { _id, status: after.status, tries_left, expires_at }
      })
    },
  }),
  endpoint({
    operation: 'verifyAchAccount',
    route: 'POST /bank-accounts/ach/{ach_account_id}/verify',
    summary: 'Tell the amounts of the two credits: the account is active if they are right',
    description:
      'In either order. Other amounts are refused with 400, and cost a try; the message says how many are left.',
    ...one,
    body: z.object({
      amounts_cents: z.tuple([amount(), amount()], wrongType('must be a list of two amounts')),
    }),
    answers: { 200: AchAccount },
    errors: { ...one.errors, 409: 'No verification is under way, or the account is verified or disabled' },
    refuses: {
      400: ['wrong_amounts'],
      403: ['ach_account_out_of_scope'],
      409: ['ach_account_disabled', 'ach_account_verified', 'no_verification'],
    },
    async handle(call) {
      const { app } = call.host
      const account = accepted(await achAccountOf(app, call.caller.client, call.params.ach_account_id))
      const after = await verifyAmounts(app, account, call.body.amounts_cents, contextOf(call))
      return isRejection(after) ? after : showAchAccount(await shownAchAccount(app, after))
    },
  }),
]
