import { z } from 'zod'
import { achAccount } from '../../../domain/banking/accounts/ach-account.ts'
import {
  AchAccountCorrected,
  AchAccountCreated,
  AchAccountDeleted,
  AchAccountVerificationStarted,
} from '../../../domain/banking/accounts/ach-account-events.ts'
import { BankAccountCreated, bankAccount } from '../../../domain/banking/accounts/bank-account.ts'
import type { Application } from '../../commands/application.ts'
import { existing } from '../../commands/verbs.ts'
import { contextOf, on, perform, processManager, work } from '../../followers/process-manager.ts'
import { ofProvider, throughOutages } from '../../followers/through-outages.ts'
import { RETURNABLE_MS, removeNumbers } from './account-numbers.ts'
import { sendMicroDeposits } from './account-verification.ts'
import { disableIfNumbersAre } from './ach-accounts.ts'
import { choosePrimary, ofAchAccount, ofBankAccount, primaryIdOf } from './primary-accounts.ts'

/**
 * What follows from what happens to bank accounts: the deposits by which they are verified, the end of what creations and
 * corrections that broke off began, and of numbers that nobody needs any more.
 */
export function bankAccounts(app: Application) {
  return processManager({
    name: 'bank-accounts',
    startAt: 'beginning',
    on: [
      on(BankAccountCreated, ({ data: { bank_account_id, primary } }) =>
        primary ? [perform('choose-primary', bank_account_id, {})] : [],
      ),
      on(AchAccountCreated, ({ data: { ach_account_id, is_primary } }) => [
        perform('check-numbers', ach_account_id, {}),
        ...(is_primary ? [perform('choose-primary', ach_account_id, {})] : []),
      ]),
      on(AchAccountCorrected, ({ data }) => [perform('check-numbers', data.ach_account_id, {})]),
      on(AchAccountVerificationStarted, ({ data: { ach_account_id, verification_id } }) => [
        perform('send-deposits', verification_id, { ach_account_id }),
      ]),
      on(AchAccountDeleted, ({ data: { ach_account_id, at } }) => [
        perform('remove-numbers', ach_account_id, {}, { at: Date.parse(at) + RETURNABLE_MS }),
      ]),
    ],
    work: {
      // the request that created it chooses it as well, unless its process died
      'choose-primary': work({}, async (item) => {
        const candidate = await chosenAtCreation(app, item.key)
        if (candidate !== null) await choosePrimary(app, candidate, contextOf(item), true)
      }),
      // the request that gave it disabled numbers disables it as well, unless its process died
      'check-numbers': work({}, async (item) => {
        await disableIfNumbersAre(app, await existing(app, achAccount, item.key), contextOf(item))
      }),
      'send-deposits': work({ ...ofProvider, payload: z.object({ ach_account_id: z.string() }) }, (item) =>
        throughOutages(app, item, () =>
          sendMicroDeposits(app, item.payload.ach_account_id, item.key, contextOf(item)),
        ),
      ),
      'remove-numbers': work({}, async (item) => {
        const at = await removeNumbers(app, item.key, contextOf(item))
        if (at !== null) return { outcome: 'again', at }
      }),
    },
  })
}

/** The account as a candidate of its first owner; null: it has moved since, and becomes primary of neither. */
async function chosenAtCreation(app: Application, accountId: string) {
  const { commands } = app
  const { state: one } = await commands.load(achAccount, accountId)
  if (one) return ofAchAccount(one)
  const created = await ofBankAccount(app, (await commands.loadAt(bankAccount, accountId, 0)).state!)
  const now = await ofBankAccount(app, (await commands.load(bankAccount, accountId)).state!)
  return primaryIdOf(now.owner) === primaryIdOf(created.owner) ? created : null
}
