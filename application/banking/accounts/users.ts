import { BankAccountCreated, type BankAccountRecord } from '../../../domain/banking/accounts/bank-account.ts'
import { type BankConnection, BankConnectionLinked } from '../../../domain/banking/linking/bank-connection.ts'
import type { Application } from '../../commands/application.ts'
import { openedOne } from '../../commands/sealed-fields.ts'

/** What accounts and connections say of their users, opened; `(erased)` where the data key was destroyed. */

export function withUser(
  { personalData }: Pick<Application, 'personalData'>,
  account: BankAccountRecord,
): Promise<BankAccountRecord> {
  return openedOne(personalData, BankAccountCreated, account)
}

export function withLinkingUser<Connection extends Pick<BankConnection, 'connection_id' | 'user_id'>>(
  { personalData }: Pick<Application, 'personalData'>,
  connection: Connection,
): Promise<Connection> {
  return openedOne(personalData, BankConnectionLinked, connection)
}

/** The key of a user that manages accounts, within its tenant and environment. */
export function userFingerprint(
  { personalData }: Pick<Application, 'personalData'>,
  { tenant_id, environment, user_id }: Pick<BankAccountRecord, 'tenant_id' | 'environment' | 'user_id'>,
): string {
  return personalData.fingerprint('bank-user', `${tenant_id}|${environment}|${user_id}`)
}
