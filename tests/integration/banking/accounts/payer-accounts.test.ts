import { expect, test } from 'vitest'
import { keepAccount, keptAccount } from '../../../../application/banking/accounts/payer-accounts.ts'
import { employerSubject } from '../../../../application/commands/sealing.ts'
import type { BankAccount } from '../../../../application/ports/bank-rail.ts'
import { openRegistrationProcess } from '../../../support/registrations.ts'

const account: BankAccount = {
  holderName: 'Tidewater Joinery LLC',
  routingNumber: '021000021',
  accountNumber: '000123456789',
  accountType: 'checking',
  bankName: null,
}

test('the account of a payer is unreadable once its employer was erased', async () => {
  const { app, bench } = await openRegistrationProcess()
  try {
    const kept = await Promise.all(
      ['a', 'b'].map((one) =>
        keepAccount(app, { payment_session_id: one.repeat(24), employer_id: one.repeat(24) }, account),
      ),
    )
    const readable = () => Promise.all(kept.map((one) => keptAccount(app, one)))
    expect(await readable()).toEqual([account, account])
    await app.personalData.destroyKey(employerSubject(app.personalData, 'a'.repeat(24)), 1)
    expect(await readable()).toEqual([null, account])
    expect(await keptAccount(app, { ...kept[1]!, account_ref: kept[0]!.account_ref })).toBeNull()
    expect(await keptAccount(app, { ...kept[1]!, account_ref: 'payer-account/lost' })).toBeNull()
  } finally {
    await bench.close()
  }
})
