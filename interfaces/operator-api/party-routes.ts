import * as carriers from '../../application/parties/carriers.ts'
import type { Address, EmployerChanges } from '../../application/parties/employers.ts'
import * as employers from '../../application/parties/employers.ts'
import { listEmployers } from '../../application/parties/list-employers.ts'
import * as payrollCompanies from '../../application/parties/payroll-companies.ts'
import { employerAsRegistered, showEmployer } from '../../application/parties/show-employers.ts'
import { isId } from '../../domain/kernel/ids.ts'
import { carrier } from '../../domain/parties/carrier.ts'
import { type Employer, employer } from '../../domain/parties/employer.ts'
import { normalizeFein } from '../../domain/parties/fein.ts'
import { payrollCompany } from '../../domain/parties/payroll-company.ts'
import type { Route } from '../http/server.ts'
import { badRequest, type Fields, isObject } from './fields.ts'
import { listAnswer, pageOf, scopeOf } from './old-lists.ts'
import { accepted, creation, notFound, type OperatorHost, operation } from './operations.ts'

export const ENVIRONMENTS = ['live', 'sandbox'] as const
const EMAIL = /^[^\s@]+@[^\s@]+$/
const MAX_ADDRESS_PARTS = 20

/** Tenants, carriers, payroll companies and employers. */
export function partyRoutes(host: OperatorHost): readonly Route[] {
  const { app } = host
  return [
    creation(host, {
      path: '/carriers',
      parse: (fields) => ({
        tenantId: fields.id('tenant_id'),
        name: fields.text('name'),
        settlementType: fields.optionalWord('settlement_type', ['fbo', 'direct']),
      }),
      create: (input, context) => carriers.register(app, input, context),
      idOf: ({ carrier_id }) => carrier_id,
      show: (created) => created,
      repeated: { by: carrier },
    }),
    operation(host, 'GET', '/carriers/:carrier_id', async (call) => {
      const id = call.parameter('carrier_id')
      const found = isId(id) ? (await app.commands.load(carrier, id)).state : null
      if (!found) throw notFound('There is no such carrier')
      return { data: found }
    }),

    creation(host, {
      path: '/payroll-companies',
      parse: (fields) => ({ tenantId: fields.id('tenant_id'), name: fields.text('name') }),
      create: (input, context) => payrollCompanies.register(app, input, context),
      idOf: ({ payroll_company_id }) => payroll_company_id,
      show: (created) => created,
      repeated: { by: payrollCompany },
    }),
    operation(host, 'GET', '/payroll-companies/:payroll_company_id', async (call) => {
      const id = call.parameter('payroll_company_id')
      const found = isId(id) ? (await app.commands.load(payrollCompany, id)).state : null
      if (!found) throw notFound('There is no such payroll company')
      return { data: found }
    }),

    creation(host, {
      path: '/employers',
      parse: (fields) => ({
        tenantId: fields.id('tenant_id'),
        environment: fields.word('environment', ENVIRONMENTS, 'live'),
        legalName: fields.text('legal_name'),
        fein: feinOf(fields),
        address: addressOf(fields),
        contactEmail: emailOf(fields),
        payrollCompanyIds: fields.ids('payroll_company_ids'),
      }),
      refuse: (input, context) => employers.refuseRegistration(app, input, context),
      create: (input, context) => employers.register(app, input, context),
      idOf: ({ employer_id }) => employer_id,
      show: (created) => showEmployer(app, created),
      repeated: { by: (id) => employerAsRegistered(app, id) },
    }),
    operation(host, 'GET', '/employers', async (call) => {
      const page = pageOf(call.query)
      return listAnswer(page, await listEmployers(app, scopeOf(call.query), page))
    }),
    operation(host, 'GET', '/employers/:employer_id', async (call) => ({
      data: await showEmployer(app, await employerOf(call.parameter('employer_id'))),
    })),
    operation(host, 'PATCH', '/employers/:employer_id', async (call) => {
      const { fields } = await call.body()
      const changes = employerChanges(fields)
      const present = await employerOf(call.parameter('employer_id'))
      await refuseFixed(fields, present)
      const changed = accepted(await employers.change(app, present.employer_id, changes, call.context()))
      return { data: await showEmployer(app, changed) }
    }),
  ]

  async function employerOf(id: string): Promise<Employer> {
    const found = isId(id) ? (await app.commands.load(employer, id)).state : null
    if (!found) throw notFound('There is no such employer')
    return found
  }

  /** What an employer keeps for ever may be repeated in a change, not changed. */
  async function refuseFixed(fields: Fields, present: Employer): Promise<void> {
    const { fein } = await showEmployer(app, present)
    const fixed = {
      employer_id: present.employer_id,
      tenant_id: present.tenant_id,
      environment: present.environment,
      fein,
    }
    for (const [name, value] of Object.entries(fixed)) {
      if (!fields.has(name)) continue
      const given = name === 'fein' ? normalizeFein(fields.raw(name)) : fields.raw(name)
      if (given !== value) throw badRequest(`${name} cannot be changed`)
    }
  }
}

function employerChanges(fields: Fields): EmployerChanges {
  const changes: { -readonly [K in keyof EmployerChanges]: EmployerChanges[K] } = {}
  if (fields.has('legal_name')) changes.legalName = fields.text('legal_name')
  if (fields.has('address')) changes.address = addressOf(fields)
  if (fields.has('contact_email')) changes.contactEmail = emailOf(fields)
  fields.notNull('payroll_company_ids')
  if (fields.has('payroll_company_ids')) changes.payrollCompanyIds = fields.ids('payroll_company_ids')
  return changes
}

function feinOf(fields: Fields): string {
  if (fields.raw('fein') === null) fields.fail('fein', 'is required')
  const fein = normalizeFein(fields.raw('fein'))
  return (
    fein ?? fields.fail('fein', 'must be a string of 9 digits, with or without a hyphen after the second')
  )
}

function emailOf(fields: Fields): string | null {
  const email = fields.optionalText('contact_email', 254)
  if (email !== null && !EMAIL.test(email)) fields.fail('contact_email', 'must be an e-mail address')
  return email
}

/** Address parts by name; a text alone is the first line. */
function addressOf(fields: Fields): Address | null {
  const value = fields.raw('address')
  if (value === null) return null
  if (typeof value === 'string') return { line1: fields.text('address') }
  if (!isObject(value)) fields.fail('address', 'must be an object with line1, city, state and zip')
  const parts: Record<string, string> = {}
  for (const [name, part] of Object.entries(value)) {
    if (part === null) continue
    if (typeof part !== 'string') fields.fail(`address.${name}`, 'must be a string')
    if (part.length > 200) fields.fail(`address.${name}`, 'must not be longer than 200 characters')
    parts[name] = part.trim()
  }
  if (Object.keys(parts).length > MAX_ADDRESS_PARTS) {
    fields.fail('address', `must not have more than ${MAX_ADDRESS_PARTS} parts`)
  }
  return parts
}
