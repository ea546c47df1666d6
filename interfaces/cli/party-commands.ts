import type { Command } from 'commander'
import type { CliIo } from './io.ts'
import type { OperatorClient } from './operator-client.ts'
import { type Output, resource, rows } from './output.ts'
import { given, jsonFile, part, texts, verb, wholeNumber } from './verbs.ts'

interface EmployerOptions {
  readonly tenantId?: string
  readonly environment?: string
  readonly legalName?: string
  readonly fein?: string
  readonly contactEmail?: string
  readonly payrollCompanyId?: readonly string[]
  readonly line1?: string
  readonly city?: string
  readonly state?: string
  readonly zip?: string
  readonly jsonFile?: string
}

export interface ListOptions {
  readonly tenantId?: string
  readonly environment?: string
  readonly page?: number
  readonly limit?: number
}

/** tenants, carriers, payroll-companies, employers. */
export function partyCommands(io: CliIo, program: Command): void {
  const tenants = program.command('tenants').description('partner accounts')
  verb<{ name: string }>(
    io,
    tenants.command('create').description('register a tenant').requiredOption('--name <text>', 'its name'),
    async ({ client, options }) => resource((await client().create('/tenants', { name: options.name })).data),
  )
  verb(io, tenants.command('show').argument('<tenant-id>'), async ({ client, args }) =>
    resource((await client().get(`/tenants/${part(args[0])}`)).data),
  )

  const carriers = program.command('carriers').description('insurers')
  verb<{ tenantId: string; name: string; settlementType?: string }>(
    io,
    carriers
      .command('create')
      .description('register a carrier')
      .requiredOption('--tenant-id <id>')
      .requiredOption('--name <text>')
      .option('--settlement-type <word>', 'fbo or direct'),
    async ({ client, options }) => {
      const { tenantId, name, settlementType } = options
      const body = given({ tenant_id: tenantId, name, settlement_type: settlementType })
      return resource((await client().create('/carriers', body)).data)
    },
  )
  verb(io, carriers.command('show').argument('<carrier-id>'), async ({ client, args }) =>
    resource((await client().get(`/carriers/${part(args[0])}`)).data),
  )

  const companies = program.command('payroll-companies').description('who reports for several employers')
  verb<{ tenantId: string; name: string }>(
    io,
    companies
      .command('create')
      .description('register a payroll company')
      .requiredOption('--tenant-id <id>')
      .requiredOption('--name <text>'),
    async ({ client, options }) => {
      const body = { tenant_id: options.tenantId, name: options.name }
      return resource((await client().create('/payroll-companies', body)).data)
    },
  )
  verb(io, companies.command('show').argument('<payroll-company-id>'), async ({ client, args }) =>
    resource((await client().get(`/payroll-companies/${part(args[0])}`)).data),
  )

  employerCommands(io, program)
}

function employerCommands(io: CliIo, program: Command): void {
  const employers = program.command('employers').description('insured employers')
  const details = (command: Command) =>
    command
      .option('--legal-name <text>')
      .option('--contact-email <address>')
      .option('--payroll-company-id <id>', 'linked payroll company; repeat for several', texts)
      .option('--line1 <text>', 'address: street')
      .option('--city <text>', 'address: city')
      .option('--state <code>', 'address: state')
      .option('--zip <code>', 'address: zip')
      .option('--json-file <file>', 'fields of the request from a JSON file; options win')

  verb<EmployerOptions>(
    io,
    details(
      employers
        .command('create')
        .description('register an employer')
        .option('--tenant-id <id>')
        .option('--environment <word>', 'live (default) or sandbox')
        .option('--fein <number>', '9 digits, with or without a hyphen'),
    ),
    async ({ client, options }) =>
      resource((await client().create('/employers', employerBody(options))).data),
  )
  verb<EmployerOptions>(
    io,
    details(employers.command('update').description('change an employer').argument('<employer-id>')),
    async ({ client, args, options }) =>
      resource((await client().patch(`/employers/${part(args[0])}`, employerBody(options))).data),
  )
  verb(
    io,
    employers
      .command('link')
      .description('link an employer to a payroll company')
      .argument('<employer-id>')
      .argument('<payroll-company-id>'),
    async ({ client, args }) => {
      const [employerId, companyId] = args as [string, string]
      const linked = await linksOf(client(), employerId)
      return setLinks(client(), employerId, [...new Set([...linked, companyId])])
    },
  )
  verb(
    io,
    employers
      .command('unlink')
      .description('end the link of an employer to a payroll company')
      .argument('<employer-id>')
      .argument('<payroll-company-id>'),
    async ({ client, args }) => {
      const [employerId, companyId] = args as [string, string]
      const linked = await linksOf(client(), employerId)
      return setLinks(
        client(),
        employerId,
        linked.filter((one) => one !== companyId),
      )
    },
  )
  verb(io, employers.command('show').argument('<employer-id>'), async ({ client, args }) =>
    resource((await client().get(`/employers/${part(args[0])}`)).data),
  )
  verb<ListOptions>(
    io,
    listOptions(employers.command('list').description('employers, newest first')),
    async ({ client, options }) => {
      const answer = await client().get('/employers', listQuery(options))
      return {
        json: answer,
        text: rows(answer.data as readonly unknown[], {
          'employer id': 'employer_id',
          'legal name': 'legal_name',
          fein: 'fein',
          environment: 'environment',
          'payroll companies': 'payroll_company_ids',
        }),
      }
    },
  )
  verb<ListOptions & { reveal?: boolean }>(
    io,
    listOptions(
      employers
        .command('register')
        .description('the employee register of an employer')
        .argument('<employer-id>')
        .option('--reveal', 'open personal fields; this is recorded'),
    ),
    async ({ client, args, options }) => {
      const query = { page: options.page, limit: options.limit, reveal: options.reveal }
      const answer = await client().get(`/employers/${part(args[0])}/register`, query)
      return {
        json: answer,
        text: rows(answer.data as readonly unknown[], {
          subject: 'subject',
          status: 'status',
          hired: 'hire_date',
          terminated: 'termination_date',
          changes: 'changes',
          record: 'record',
        }),
      }
    },
  )
}

/** The options of every list. */
export function listOptions(command: Command): Command {
  return command
    .option('--tenant-id <id>')
    .option('--environment <word>', 'live or sandbox')
    .option('--page <number>', 'from 1', wholeNumber)
    .option('--limit <number>', 'at most 200', wholeNumber)
}

export function listQuery(options: ListOptions): Record<string, unknown> {
  const { tenantId, environment, page, limit } = options
  return { tenant_id: tenantId, environment, page, limit }
}

function employerBody(options: EmployerOptions): Record<string, unknown> {
  const { line1, city, state, zip } = options
  const address = given({ line1, city, state, zip })
  return {
    ...jsonFile(options.jsonFile),
    ...given({
      tenant_id: options.tenantId,
      environment: options.environment,
      legal_name: options.legalName,
      fein: options.fein,
      contact_email: options.contactEmail,
      payroll_company_ids: options.payrollCompanyId,
      address: Object.keys(address).length > 0 ? address : undefined,
    }),
  }
}

async function linksOf(client: OperatorClient, employerId: string): Promise<readonly string[]> {
  const { data } = await client.get(`/employers/${part(employerId)}`)
  return (data as { payroll_company_ids: readonly string[] }).payroll_company_ids
}

async function setLinks(client: OperatorClient, employerId: string, ids: readonly string[]): Promise<Output> {
  return resource((await client.patch(`/employers/${part(employerId)}`, { payroll_company_ids: ids })).data)
}
