import { z } from 'zod'
import { employeeRegister } from '../../../application/parties/employee-register.ts'
import type { Address } from '../../../application/parties/employers.ts'
import * as employers from '../../../application/parties/employers.ts'
import { listEmployers } from '../../../application/parties/list-employers.ts'
import { employerAsRegistered, showEmployer } from '../../../application/parties/show-employers.ts'
import { employer } from '../../../domain/parties/employer.ts'
import { normalizeFein } from '../../../domain/parties/fein.ts'
import { create, created } from '../../endpoints/creations.ts'
import { accepted } from '../../endpoints/endpoint.ts'
import { email, id, ofOne, optional, text, wrongType } from '../../endpoints/fields.ts'
import { listAnswer, listOf } from '../../endpoints/lists.ts'
import { refuseFixed, repeating } from '../../endpoints/repeating.ts'
import { contextOf, endpoint, keyed, loaded, recordReveal } from '../host/api.ts'
import { handleList, scope } from '../host/lists.ts'
import { environment, given, list, owner, revealing, shownTime } from '../host/values.ts'

const FEIN = 'must be a string of 9 digits, with or without a hyphen after the second'
const MAX_ADDRESS_PARTS = 20

const fein = z
  .string(wrongType(FEIN))
  .refine((value) => normalizeFein(value) !== null, FEIN)
  .meta({ pattern: '^\\d{2}-?\\d{7}$', description: 'Tax number of the employer, unique per environment' })
/** Parts by name; those that are null are left out. */
const addressParts = z
  .record(z.string(), z.string().trim().max(200).nullable())
  .refine(
    (parts) => Object.keys(parts).length <= MAX_ADDRESS_PARTS,
    `must not have more than ${MAX_ADDRESS_PARTS} parts`,
  )
  .transform(
    (parts) => Object.fromEntries(Object.entries(parts).filter(([, part]) => part !== null)) as Address,
  )
const address = z
  .union(
    [text().transform((line1): Address => ({ line1 })), addressParts],
    wrongType('must be an object with line1, city, state and zip'),
  )
  .describe('Parts by name, such as `line1`, `city`, `state` and `zip`; a text alone is the first line')
/** Null could be read as emptying the list. */
const notNull = {
  error: ({ input }: { readonly input?: unknown }) => (input === null ? 'must not be null' : undefined),
}

const Employer = z
  .object({
    employer_id: id(),
    ...owner,
    legal_name: z.string(),
    fein: z.string().describe('`XX-XXXXXXX`; `(erased)` after an erasure, as address and contact'),
    address: z.union([z.record(z.string(), z.string()), z.string()]).nullable(),
    contact_email: z.string().nullable(),
    payroll_company_ids: z.array(id()),
    data_subject: z.string().describe('What an erasure of the employer’s personal data names'),
  })
  .meta({ id: 'Employer' })

/** What may change about an employer. */
const Changes = z.object({
  legal_name: text().optional(),
  address: address.nullable().optional(),
  contact_email: email().nullable().optional(),
  payroll_company_ids: list(id(), notNull).optional().describe('The whole new list; `[]` ends all links'),
})

const RegisteredEmployee = z
  .object({
    subject: z.string().describe('What an erasure of the person names'),
    status: z.enum(['employed', 'terminated']),
    hire_date: z.string().nullable(),
    termination_date: z.string().nullable(),
    last_action: z.enum(['hire', 'terminate', 'update']),
    changes: z.int().describe('Changes reported in all'),
    updated_at: shownTime(),
    record: z.unknown().describe('The last change as it was reported; masked unless `reveal=true`'),
  })
  .meta({ id: 'RegisteredEmployee' })

const one = ofOne('employer_id', 'employer')

export const employerEndpoints = [
  endpoint({
    operation: 'registerEmployer',
    route: 'POST /employers',
    summary: 'Register an employer',
    body: z.object({
      tenant_id: id(),
      environment: environment(),
      legal_name: text(),
      fein,
      address: optional(address),
      contact_email: optional(email()),
      payroll_company_ids: optional(list(id())).describe('Payroll companies that report for it'),
    }),
    ...created(Employer),
    errors: {
      404: 'There is no such tenant, or it has no such payroll company',
      409: 'An employer with this FEIN is registered in the environment',
    },
    refuses: {
      400: ['invalid_fein'],
      404: ['payroll_company_not_found', 'tenant_not_found'],
      409: ['fein_taken'],
    },
    handle(call) {
      const { app } = call.host
      const input = { ...call.body, payroll_company_ids: call.body.payroll_company_ids ?? [] }
      return create(keyed(call), 'POST /employers', {
        prepare: (context) => employers.prepareRegistration(app, input, context),
        create: (context, registration) => employers.register(app, registration, context),
        idOf: ({ employer_id }) => employer_id,
        show: (one) => showEmployer(app, one),
        repeated: (id) => employerAsRegistered(app, id),
      })
    },
  }),
  endpoint({
    operation: 'listEmployers',
    route: 'GET /employers',
    summary: 'List employers, newest first',
    ...listOf(Employer, scope),
    columns: 'employer_id legal_name fein environment payroll_companies:payroll_company_ids',
    handle: handleList(listEmployers),
  }),
  endpoint({
    operation: 'showEmployer',
    route: 'GET /employers/{employer_id}',
    summary: 'Show an employer',
    ...one,
    answers: { 200: Employer },
    handle: async ({ host, params }) =>
      showEmployer(host.app, await loaded(host, employer, params.employer_id, 'employer')),
  }),
  endpoint({
    operation: 'changeEmployer',
    route: 'PATCH /employers/{employer_id}',
    summary: 'Change an employer',
    description:
      'What is left out stays as it is; null clears address and contact. Tenant, environment and FEIN may be repeated, ' +
      'not changed.',
    ...one,
    body: repeating(Employer, Changes),
    answers: { 200: Employer },
    errors: { 404: 'There is no such employer, or its tenant has no such payroll company' },
    refuses: { 404: ['payroll_company_not_found'] },
    async handle(call) {
      const { host, body, sent } = call
      const present = await loaded(host, employer, call.params.employer_id, 'employer')
      const { employer_id, tenant_id, environment } = present
      const { fein, data_subject } = await showEmployer(host.app, present)
      refuseFixed(
        { ...sent, ...('fein' in sent && { fein: normalizeFein(sent.fein) }) },
        { employer_id, tenant_id, environment, fein, data_subject },
      )
      const changed = await employers.change(host.app, employer_id, given(body), contextOf(call))
      return showEmployer(host.app, accepted(changed))
    },
  }),
  endpoint({
    operation: 'listEmployeeRegister',
    route: 'GET /employers/{employer_id}/register',
    summary: 'List the employee register of an employer',
    ...one,
    ...listOf(RegisteredEmployee, revealing),
    command: { items: 'employees' },
    columns: 'subject status hired:hire_date terminated:termination_date changes record',
    async handle(call) {
      const { host, query } = call
      const { employer_id } = await loaded(host, employer, call.params.employer_id, 'employer')
      const register = await employeeRegister(host.app, employer_id, query)
      const { page, limit, reveal } = query
      if (reveal) {
        const details = { page, limit, values: register.items.length }
        await recordReveal(call, `employer-${employer_id}/register`, details)
      }
      return listAnswer(query, register)
    },
  }),
]
