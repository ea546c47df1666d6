import { z } from 'zod'
import { achAccount } from '../../domain/banking/ach-account.ts'
import {
  AchAccountCreated,
  AchAccountDeleted,
  AchAccountVerificationStarted,
} from '../../domain/banking/ach-account-events.ts'
import { BankAccountCreated, bankAccount } from '../../domain/banking/bank-account.ts'
import type { Application } from '../application.ts'
import { RETURNABLE_MS, removeNumbers } from '../banking/account-numbers.ts'
import { sendMicroDeposits } from '../banking/account-verification.ts'
import { choosePrimary, ofAchAccount, ofBankAccount } from '../banking/primary-accounts.ts'
import { backoff, contextOf, on, perform, processManager, work } from './runtime/process-manager.ts'
import { ofProvider, throughOutages, unlessLate, waiting } from './through-outages.ts'

/**
 * What follows from what happens to bank accounts: the deposits by which they are verified, the end of what creations that
 * broke off began, and of numbers that nobody needs any more.
 */
export function bankAccounts(app: Application) {
  const kind = { payload: z.object({}), retry: backoff(), timeLimitMs: 60_000 }
  return processManager({
    name: 'bank-accounts',
    startAt: 'beginning',
    on: [
      on(BankAccountCreated, ({ data: { bank_account_id, primary } }) =>
        primary ? [perform('choose-primary', bank_account_id, {})] : [],
      ),
      on(AchAccountCreated, ({ data: { ach_account_id, is_primary } }) =>
        is_primary ? [perform('choose-primary', ach_account_id, {})] : [],
      ),
      on(AchAccountVerificationStarted, ({ data: { ach_account_id, verification_id } }) => [
        perform('send-deposits', verification_id, { ach_account_id }),
      ]),
      on(AchAccountDeleted, ({ data: { ach_account_id, at } }) => [
        perform('remove-numbers', ach_account_id, {}, { at: Date.parse(at) + RETURNABLE_MS }),
      ]),
    ],
    work: {
      // whoever created it chooses it as well, unless it died
      'choose-primary': work(kind, async (item) => {
        const { state: one } = await app.commands.load(achAccount, item.key)
        const { state: other } = await app.commands.load(bankAccount, item.key)
        const candidate = one ? ofAchAccount(one) : ofBankAccount(other!)
        await choosePrimary(app, candidate, contextOf(item), true)
        return { outcome: 'done' }
      }),
      'send-deposits': work(
        { ...ofProvider, payload: waiting.extend({ ach_account_id: z.string() }) },
        (item) =>
          throughOutages(app, item, () =>
            sendMicroDeposits(app, item.payload.ach_account_id, item.key, contextOf(item)),
          ),
      ),
      'remove-numbers': work(kind, (item) =>
        unlessLate(async () => {
          const at = await removeNumbers(app, item.key, contextOf(item))
          return at === null ? { outcome: 'done' } : { outcome: 'again', at }
        }),
      ),
    },
  })
}
