import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { keepAccount, keptAccount } from '../../application/banking/payer-accounts.ts'
import type { BankAccount } from '../../application/ports/bank-rail.ts'
import { employerSubject } from '../../application/sealing.ts'
import { MasterKeys } from '../../infrastructure/crypto/master-keys.ts'
import { EncryptedPersonalData } from '../../infrastructure/secrets/personal-data.ts'
import { PostgresSecretVault } from '../../infrastructure/secrets/vault.ts'
import { createTestDatabase } from '../support/database.ts'
import { openWorkbench } from '../support/workbench.ts'

const account: BankAccount = {
  holderName: 'Tidewater Joinery LLC',
  routingNumber: '021000021',
  accountNumber: '000123456789',
  accountType: 'checking',
  bankName: null,
}

test('the account of a payer is unreadable once its employer was erased', async () => {
  const database = await createTestDatabase()
  const bench = await openWorkbench(database.url)
  try {
    const masterKeys = new MasterKeys([randomBytes(32)])
    const { pool } = bench.database
    const vault = new PostgresSecretVault(pool, masterKeys, bench.clock)
    const personalData = await EncryptedPersonalData.open({ pool, vault, masterKeys, clock: bench.clock })
    const app = { vault, personalData, randomness: { hex: (n: number) => randomBytes(n).toString('hex') } }
    const kept = await Promise.all(
      ['a', 'b'].map((one) =>
        keepAccount(
          app as never,
          { payment_session_id: one.repeat(24), employer_id: one.repeat(24) },
          account,
        ),
      ),
    )
    const readable = () => Promise.all(kept.map((one) => keptAccount(app, one)))
    expect(await readable()).toEqual([account, account])
    await personalData.destroyKey(employerSubject(personalData, 'a'.repeat(24)), 1)
    expect(await readable()).toEqual([null, account])
    expect(await keptAccount(app, { ...kept[1]!, account_ref: kept[0]!.account_ref })).toBeNull()
    expect(await keptAccount(app, { ...kept[1]!, account_ref: 'payer-account/lost' })).toBeNull()
  } finally {
    await bench.close()
    await database.drop()
  }
})
