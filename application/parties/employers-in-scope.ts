import type { AgentCredential } from '../../domain/access/agent-credential.ts'
import { isId } from '../../domain/kernel/ids.ts'
import { employer } from '../../domain/parties/employer.ts'
import { payrollCompany } from '../../domain/parties/payroll-company.ts'
import { isInScope } from '../access/agent-scope.ts'
import type { Application } from '../commands/application.ts'
import { type Parameter, sql, statement } from '../queries/statement.ts'
import { legalName } from './legal-names.ts'

/** Employers of one answer at the most. */
const MAX_EMPLOYERS = 100

const EMPLOYERS_OF_COMPANY = statement(
  'employers-of-payroll-company',
  (db, $: Parameter<{ tenantId: string; companyId: string; limit: number }>) =>
    db
      .selectFrom('employers')
      .select('employer_id')
      .where('tenant_id', '=', $('tenantId'))
      .where(sql<boolean>`payroll_company_ids ? ${$('companyId')}`)
      .orderBy('seq')
      .limit($('limit')),
)

type Reads = Pick<Application, 'read' | 'readModels' | 'log' | 'commands' | 'personalData'>
type Agent = Pick<AgentCredential, 'entity_type' | 'entity_id'>

/**
 * The employers that an agent may act for at this moment, by their order of registration, {@link MAX_EMPLOYERS} at the
 * most: the read model tells which were linked, the log which still are.
 */
export async function employersInScope(app: Reads, agent: Agent) {
  const ids = agent.entity_type === 'employer' ? [agent.entity_id] : await linkedTo(app, agent.entity_id)
  const loaded = await app.commands.loadAll(employer, ids.slice(0, MAX_EMPLOYERS).filter(isId))
  const inScope = loaded
    .map(({ state }) => state)
    .filter((state) => state !== null)
    .filter((state) => isInScope(agent, state))
  return {
    employers: await Promise.all(
      inScope.map(async (one) => ({
        employer_id: one.employer_id,
        employer_name: await legalName(app, one),
      })),
    ),
    has_more: ids.length > MAX_EMPLOYERS,
  }
}

async function linkedTo(app: Reads, companyId: string): Promise<readonly string[]> {
  if (!isId(companyId)) return []
  const { state } = await app.commands.load(payrollCompany, companyId)
  if (state === null) return []
  await app.readModels.reached(['employers'], await app.log.head())
  const scope = { tenantId: state.tenant_id, companyId, limit: MAX_EMPLOYERS + 1 }
  return (await app.read.query(EMPLOYERS_OF_COMPANY, scope)).map(({ employer_id }) => employer_id)
}
