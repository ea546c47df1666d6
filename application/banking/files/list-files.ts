import type { BankFileStatus } from '../../../domain/banking/files/bank-file.ts'
import type { BANK_REPORT_STATUSES } from '../../../domain/banking/files/bank-report.ts'
import type { Application } from '../../commands/application.ts'
import type { ListPage, PageRequest, ResultOf } from '../../ports/read-database.ts'
import { operatorRows } from '../../queries/lists.ts'
import { pagedList, readPage } from '../../queries/pages.ts'
import { equalIfGiven, type Parameter, statement } from '../../queries/statement.ts'

type Parts = Pick<Application, 'read' | 'readModels' | 'log'>
const projection = 'bank-files'

/** Files for banks. */
export const listBankFiles = operatorRows({ projection, table: 'bank_files', by: ['status'] })

interface ReportScope {
  readonly status: (typeof BANK_REPORT_STATUSES)[number] | null
  /** Only those with parked items. */
  readonly leastParked: number
}
const REPORTS = pagedList({ projection, name: 'bank-reports' }, (db, $: Parameter<ReportScope>) =>
  db
    .selectFrom('bank_reports')
    .selectAll()
    .where((eb) => equalIfGiven(eb, $, 'status'))
    .where('parked', '>=', $('leastParked'))
    .orderBy('seq', 'desc'),
)

/** Files that banks reported with, newest first. */
export function listBankReports(
  app: Parts,
  scope: ReportScope,
  page: PageRequest,
): Promise<ListPage<ResultOf<typeof REPORTS.rows>>> {
  return readPage(app, REPORTS, scope, page)
}

interface LookedFor {
  readonly statuses: readonly BankFileStatus[]
  readonly limit: number
}
const LOOKED_AFTER = statement('bank-files-looked-after', (db, $: Parameter<LookedFor>) =>
  db
    .selectFrom('bank_files')
    .select('file_id')
    .where('status', '=', ({ fn }) => fn.any($('statuses')))
    .orderBy('seq')
    .limit($('limit')),
)
/** Files that are looked after at once. */
const MOST_LOOKED_AFTER = 1_000

/** Files that stand in the outbox, as far as is known, and those that may come back into it; the oldest first. */
export async function filesLookedAfter({ read }: Pick<Application, 'read'>): Promise<readonly string[]> {
  const wanted = { statuses: ['exposed', 'uncertain'], limit: MOST_LOOKED_AFTER } as const
  return (await read.query(LOOKED_AFTER, wanted)).map(({ file_id }) => file_id)
}
