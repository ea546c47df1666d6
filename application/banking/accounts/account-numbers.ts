import { achAccount } from '../../../domain/banking/accounts/ach-account.ts'
import { type DebitStatus, OPEN_STATUSES } from '../../../domain/banking/debits/bank-debit-state.ts'
import { startOf } from '../../../domain/kernel/new-york.ts'
import { orThrow } from '../../../domain/kernel/rejection.ts'
import type { Application } from '../../commands/application.ts'
import type { CommandContext } from '../../commands/command-context.ts'
import { changed } from '../../commands/verbs.ts'
import { untilCurrent } from '../../queries/find-current.ts'
import { type Parameter, statement } from '../../queries/statement.ts'

/** How long after its last use the numbers of an account may be asked for, as for a debit that comes back, in milliseconds. */
export const RETURNABLE_MS = 180 * 86_400_000

/**
 * Removes the numbers of a deleted account from the vault, unless a debit of it can be returned still.
 * @returns when to look again, in epoch milliseconds; null: they are gone.
 * @throws ReadModelsLate when it cannot be told what was debited.
 */
export async function removeNumbers(
  app: Application,
  achAccountId: string,
  context: CommandContext,
): Promise<number | null> {
  const { state } = await app.commands.load(achAccount, achAccountId)
  if (state === null || state.deleted_at === null) return null
  const used = await lastUse(app, achAccountId)
  const until = Math.max(Date.parse(state.deleted_at), used ?? 0) + RETURNABLE_MS
  if (until > app.clock.now()) return until
  for (const ref of state.account_refs) await app.vault.remove(ref)
  const command = { type: 'RecordRemoved', at: app.clock.now() } as const
  orThrow(await changed(app, achAccount, achAccountId, command, context))
  return null
}

interface OfAccount {
  readonly achAccountId: string
}
const USE = statement('use-of-ach-account', (db, $: Parameter<OfAccount>) =>
  db
    .selectFrom('bank_debits')
    .select(({ fn }) => [fn.max('created_at').as('created'), fn.max('effective_date').as('effective')])
    .where('bank_account_id', '=', $('achAccountId')),
)
const OPEN_DEBITS = statement(
  'open-debits-of-ach-account',
  (db, $: Parameter<OfAccount & { readonly statuses: readonly DebitStatus[]; readonly limit: number }>) =>
    db
      .selectFrom('bank_debits')
      .select('leg_id')
      .where('bank_account_id', '=', $('achAccountId'))
      .where('status', '=', ({ fn }) => fn.any($('statuses')))
      .limit($('limit')),
)

/**
 * When an account was debited last, in epoch milliseconds: now while a debit is yet to be handed over; null: never.
 * @throws ReadModelsLate
 */
async function lastUse(app: Application, achAccountId: string): Promise<number | null> {
  await untilCurrent(app, 'bank-debits')
  const open = await app.read.query(OPEN_DEBITS, { achAccountId, statuses: OPEN_STATUSES, limit: 1 })
  if (open.length > 0) return app.clock.now()
  const [use] = await app.read.query(USE, { achAccountId })
  const times = [use?.created && Date.parse(use.created), use?.effective && startOf(use.effective)]
  const known = times.filter((time) => typeof time === 'number')
  return known.length === 0 ? null : Math.max(...known)
}
