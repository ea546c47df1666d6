import { z } from 'zod'
import { amountsOf } from '../../../application/banking/accounts/account-verification.ts'
import { attestAchAccount, enableNumbers } from '../../../application/banking/accounts/ach-accounts.ts'
import {
  ACH_ACCOUNT_STATUSES,
  type AchAccount,
  achAccount,
} from '../../../domain/banking/accounts/ach-account.ts'
import { accepted } from '../../endpoints/endpoint.ts'
import { id, ofOne, optional, text } from '../../endpoints/fields.ts'
import { conflict, contextOf, endpoint, loaded, notFound } from '../host/api.ts'
import { AUDITING } from '../host/roles.ts'

const one = ofOne('ach_account_id', 'ACH account')

const Account = z
  .object({
    _id: id(),
    account_last4: z.string(),
    routing_last4: z.string(),
    status: z.enum(ACH_ACCOUNT_STATUSES),
    verified: z.boolean(),
    bank_name: z.string(),
    account_type: z.enum(['checking', 'savings']),
    owner_type: z.enum(['employer', 'carrier']),
    owner_id: id(),
  })
  .meta({ id: 'AchAccount' })

export const achAccountEndpoints = [
  endpoint({
    operation: 'attestAchAccount',
    route: 'POST /ach-accounts/{ach_account_id}/attest',
    summary: "Attest that an ACH account is its owner's: it is active",
    description:
      'Attesting again changes nothing. One that a return called closed or unknown stays `disabled`, and can be enabled then.',
    ...one,
    body: z.object({ note: optional(text()).describe('How that is known; without numbers') }),
    answers: { 200: Account },
    errors: { ...one.errors, 409: 'The account is disabled, by a code that does not say that there is none' },
    refuses: { 409: ['ach_account_disabled'] },
    async handle(call) {
      const { host, params, body } = call
      return shown(
        accepted(await attestAchAccount(host.app, params.ach_account_id, body.note, contextOf(call))),
      )
    },
  }),
  endpoint({
    operation: 'enableAchAccount',
    route: 'POST /ach-accounts/{ach_account_id}/enable',
    summary: 'Enable the numbers of an ACH account again, which a return has disabled',
    description:
      'Every ACH account of its tenant and environment that has them, or that the bank link says is the same, is enabled: ' +
      '`active` if it was verified, else `unverified`. One that is not disabled stays as it is. What has failed meanwhile stays so: have it debited anew.',
    ...one,
    body: z.object({
      reason: text().describe('Why they may be debited again; without numbers, and names nobody'),
    }),
    answers: { 200: Account },
    errors: {
      ...one.errors,
      409:
        'The return said that there is no such account (R02, R03, R04, R12, R13, R28), and it was not verified since, by ' +
        'micro-deposits or an attestation',
    },
    refuses: { 409: ['ach_account_unverified'] },
    async handle(call) {
      const { host, params, body } = call
      return shown(
        accepted(await enableNumbers(host.app, params.ach_account_id, body.reason, contextOf(call))),
      )
    },
  }),
  endpoint({
    operation: 'showMicroDeposits',
    route: 'GET /bank-rail/micro-deposits/{ach_account_id}',
    // whoever knows them verifies the account
    roles: AUDITING,
    summary: 'Show the amounts of the deposits of the last verification, as its owner would see them',
    description: 'On the simulated bank rail, and in the sandbox, only.',
    ...one,
    answers: {
      200: z.object({ amounts_cents: z.array(z.int()).readonly() }).meta({ id: 'MicroDeposits' }),
    },
    errors: {
      404: 'There is no such ACH account, or no verification of it was started',
      409: 'The deposits go to a real bank',
    },
    command: { name: 'bank-rail micro-deposits' },
    refuses: { 404: ['no_verification'] },
    async handle(call) {
      const { app } = call.host
      const account = await loaded(call.host, achAccount, call.params.ach_account_id, 'ACH account')
      if (app.bankRails[account.environment].kind !== 'simulated')
        throw conflict('The deposits go to a real bank')
      if (account.verification === null)
        throw notFound('No verification of the account was started', 'no_verification')
      return { amounts_cents: amountsOf(app, account.verification) }
    },
  }),
]

function shown({ account: numbers, ...account }: AchAccount) {
  return { ...numbers, ...account, _id: account.ach_account_id }
}
