import { z } from 'zod'
import { amountsOf } from '../../application/banking/account-verification.ts'
import { attestAchAccount } from '../../application/banking/ach-accounts.ts'
import { ACH_ACCOUNT_STATUSES, achAccount } from '../../domain/banking/ach-account.ts'
import { isId } from '../../domain/kernel/ids.ts'
import { isRejection } from '../../domain/kernel/rejection.ts'
import { id, idOf, optional, text } from '../endpoints/fields.ts'
import { conflict, contextOf, endpoint, loaded, notFound, operator } from './api.ts'

const params = z.object({ ach_account_id: idOf('ACH account') })
const NONE = { 404: 'There is no such ACH account' } as const

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
    method: 'POST',
    path: '/ach-accounts/{ach_account_id}/attest',
    summary: "Attest that an ACH account is its owner's: it is active",
    description: 'Attesting again changes nothing.',
    access: operator,
    params,
    body: z.object({ note: optional(text()).describe('How that is known; without numbers') }),
    answers: { 200: Account },
    errors: { ...NONE, 409: 'The account is disabled' },
    command: { name: 'ach-accounts attest' },
    async handle(call) {
      const { ach_account_id } = call.params
      if (!isId(ach_account_id)) throw notFound(NONE[404])
      const after = await attestAchAccount(call.host.app, ach_account_id, call.body.note, contextOf(call))
      if (isRejection(after)) return after
      const { account, routing_last4, status, verified, bank_name, owner_type, owner_id } = after
      const { account_last4, account_type } = account
      return {
        _id: ach_account_id,
        account_last4,
        routing_last4,
        status,
        verified,
        bank_name,
        account_type,
        owner_type,
        owner_id,
      }
    },
  }),
  endpoint({
    operation: 'showMicroDeposits',
    method: 'GET',
    path: '/bank-rail/micro-deposits/{ach_account_id}',
    summary: 'Show the amounts of the deposits of the last verification, as its owner would see them',
    description: 'On the simulated bank rail, and in the sandbox, only.',
    access: operator,
    params,
    answers: {
      200: z.object({ amounts_cents: z.array(z.int()).readonly() }).meta({ id: 'MicroDeposits' }),
    },
    errors: {
      404: 'There is no such ACH account, or no verification of it was started',
      409: 'The deposits go to a real bank',
    },
    command: { name: 'bank-rail micro-deposits' },
    async handle(call) {
      const { app } = call.host
      const account = await loaded(call.host, achAccount, call.params.ach_account_id, 'ACH account')
      if (app.bankRails[account.environment].kind !== 'simulated')
        throw conflict('The deposits go to a real bank')
      if (account.verification === null) throw notFound('No verification of the account was started')
      return { amounts_cents: amountsOf(app, account.verification) }
    },
  }),
]
