import { z } from 'zod'
import {
  PayrollFileProcessed,
  PayrollPremiumCalculated,
} from '../../../domain/payroll/payroll-file-events.ts'
import type { Application } from '../../commands/application.ts'
import { contextOf, on, perform, processManager, work } from '../../followers/process-manager.ts'
import { raisePayrollDebit } from './payroll-debits.ts'

const due = z.object({ amount_cents: z.int().min(1), ach_account_id: z.string() })

/**
 * Debits the premium of payroll files from the primary ACH accounts of their employers, as soon as it is known. Files that
 * were processed before a service first started that has this process manager are left alone.
 */
export function payrollDebits(app: Application) {
  return processManager({
    name: 'payroll-debits',
    startAt: 'registration',
    on: [
      on(PayrollFileProcessed, ({ data: { file_id, premium, debit_account_id } }) =>
        raise(file_id, premium?.premium_cents, debit_account_id),
      ),
      on(PayrollPremiumCalculated, ({ data: { file_id, completed } }) =>
        raise(file_id, completed?.premium_cents, completed?.debit_account_id),
      ),
    ],
    work: {
      // the id of the debit derives from file and policy: a repetition changes nothing
      'raise-debit': work({ payload: due }, async (item) => {
        const { amount_cents: amountCents, ach_account_id: achAccountId } = item.payload
        await raisePayrollDebit(app, { fileId: item.key, amountCents, achAccountId }, contextOf(item))
      }),
    },
  })
}

/** Nothing without a premium, or without an account to debit: of that the file says so. */
function raise(fileId: string, amount_cents: number | undefined, ach_account_id: string | null | undefined) {
  if (!amount_cents || !ach_account_id) return []
  return [perform('raise-debit', fileId, { amount_cents, ach_account_id })]
}
