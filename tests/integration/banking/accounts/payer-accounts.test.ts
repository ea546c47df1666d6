import { expect, test } from 'vitest'
import { keepAccount, keptAccount } from '../../../../application/banking/accounts/payer-accounts.ts'
import { correctPayerAccount } from '../../../../application/banking/accounts/payer-corrections.ts'
import { employerSubject } from '../../../../application/commands/sealing.ts'
import type { BankAccount } from '../../../../application/ports/bank-rail.ts'
import { bankDebit } from '../../../../domain/banking/debits/bank-debit.ts'
import { BankDebitCreated } from '../../../../domain/banking/debits/bank-debit-events.ts'
import { debitData } from '../../../support/bank-debit-data.ts'
import {
  accepted,
  openRegistrationProcess,
  operatorContext,
  waitingBefore,
} from '../../../support/registrations.ts'
import { newId } from '../../../support/webhooks.ts'

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

test('two corrections of the account of a payer at the same moment both count', async () => {
  const { app, bench } = await openRegistrationProcess()
  try {
    const [payment_session_id, employer_id] = [newId(), newId()]
    const kept = await keepAccount(app, { payment_session_id, employer_id }, account)
    const of = { source: 'session', payment_session_id, bank_account_id: null, account: kept } as const
    const data = debitData(app.clock.now(), { employer_id, ...of })
    const debit = bankDebit.evolve(null, BankDebitCreated.of(data))!
    const slow = waitingBefore(app, 'payerCorrection')
    const number = { changeCode: 'C01', accountNumber: '99988877' }
    const later = correctPayerAccount(slow.app, debit, number, operatorContext())
    await slow.arrived
    const routing = { changeCode: 'C02', routingNumber: '011000015' }
    accepted(await correctPayerAccount(app, debit, routing, operatorContext()))
    slow.goOn()
    const both = { ...account, accountNumber: '99988877', routingNumber: '011000015' }
    expect(await keptAccount(app, accepted(await later))).toEqual(both)
  } finally {
    await bench.close()
  }
})
