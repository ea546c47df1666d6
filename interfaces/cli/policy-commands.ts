import { type Command, InvalidArgumentError } from 'commander'
import type { CliIo } from './io.ts'
import { dollars, resource, rows } from './output.ts'
import { type ListOptions, listOptions, listQuery } from './party-commands.ts'
import { flag, given, jsonFile, part, repeated, texts, verb, wholeNumber } from './verbs.ts'

interface PolicyOptions {
  readonly employerId?: string
  readonly carrierId?: string
  readonly policyNumber?: string
  readonly status?: string
  readonly effectiveDate?: string
  readonly expirationDate?: string
  readonly annualPremiumCents?: number
  readonly overtimeExclusion?: boolean
  readonly classCode?: readonly string[]
  readonly state?: readonly string[]
  readonly location?: readonly object[]
  readonly rate?: readonly object[]
  readonly payrollFrequency?: string
  readonly fee?: readonly object[]
  readonly billingType?: string
  readonly jsonFile?: string
}

/** policies: create, update, cancel, show, list. */
export function policyCommands(io: CliIo, program: Command): void {
  const policies = program.command('policies').description("workers' compensation policies")
  const terms = (command: Command) =>
    command
      .option('--class-code <code>', 'repeat for several', texts)
      .option('--state <code>', 'repeat for several', texts)
      .option('--location <id:state>', 'repeat for several', repeated(location))
      .option(
        '--rate <code:state:rate>',
        'dollars per 100 dollars, like 8810:CA:0.35; repeat',
        repeated(rate),
      )
      .option('--payroll-frequency <word>', 'like WEEKLY')
      .option('--fee <label:cents>', 'repeat for several', repeated(fee))
      .option('--billing-type <word>', 'PAY_AS_YOU_GO, DIRECT_BILLING or none')
      .option('--json-file <file>', 'fields of the request from a JSON file; options win')

  verb<PolicyOptions>(
    io,
    terms(
      policies
        .command('create')
        .description('issue a policy')
        .option('--employer-id <id>')
        .option('--carrier-id <id>')
        .option('--policy-number <text>')
        .option('--status <word>', 'active (default) or in_progress')
        .option('--effective-date <date>', 'YYYY-MM-DD')
        .option('--expiration-date <date>', 'YYYY-MM-DD')
        .option('--annual-premium-cents <number>', 'whole cents', wholeNumber)
        .option('--overtime-exclusion <flag>', 'true or false', flag),
    ),
    async ({ client, options }) => resource((await client().create('/policies', policyBody(options))).data),
  )
  verb<PolicyOptions>(
    io,
    terms(policies.command('update').description('change terms of a policy').argument('<policy-id>')),
    async ({ client, args, options }) =>
      resource((await client().patch(`/policies/${part(args[0])}`, policyBody(options))).data),
  )
  verb<{ reason?: string }>(
    io,
    policies
      .command('cancel')
      .description('cancel a policy and free its number')
      .argument('<policy-id>')
      .option('--reason <text>'),
    async ({ client, args, options }) => {
      const body = given({ reason: options.reason })
      return resource((await client().post(`/policies/${part(args[0])}/cancel`, body)).data)
    },
  )
  verb(io, policies.command('show').argument('<policy-id>'), async ({ client, args }) =>
    resource((await client().get(`/policies/${part(args[0])}`)).data),
  )
  verb<ListOptions & { employerId?: string }>(
    io,
    listOptions(policies.command('list').description('policies, newest first')).option('--employer-id <id>'),
    async ({ client, options }) => {
      const query = { ...listQuery(options), employer_id: options.employerId }
      const answer = await client().get('/policies', query)
      return {
        json: answer,
        text: rows(answer.data as readonly unknown[], {
          'policy id': 'policy_id',
          number: 'policy_number',
          status: 'status',
          from: 'effective_date',
          to: 'expiration_date',
          'class codes': 'class_codes',
          states: 'states',
          'annual premium': (row) => dollars(row.annual_premium_cents),
        }),
      }
    },
  )
}

function policyBody(options: PolicyOptions): Record<string, unknown> {
  const { billingType } = options
  return {
    ...jsonFile(options.jsonFile),
    ...given({
      employer_id: options.employerId,
      carrier_id: options.carrierId,
      policy_number: options.policyNumber,
      status: options.status,
      effective_date: options.effectiveDate,
      expiration_date: options.expirationDate,
      annual_premium_cents: options.annualPremiumCents,
      overtime_exclusion: options.overtimeExclusion,
      class_codes: options.classCode,
      states: options.state,
      locations: options.location,
      rates: options.rate,
      payroll_frequency: options.payrollFrequency,
      fees: options.fee,
      billing_type: billingType === 'none' ? null : billingType,
    }),
  }
}

function rate(text: string): object {
  const [class_code, state, rate_per_100, ...rest] = text.split(':')
  if (!class_code || !state || !rate_per_100 || rest.length > 0) {
    throw new InvalidArgumentError('It takes code:state:rate, like 8810:CA:0.35.')
  }
  return { class_code, state, rate_per_100 }
}

function fee(text: string): object {
  const [label, cents] = lastColon(text)
  if (label === '') throw new InvalidArgumentError('It takes label:cents, like "Installment fee:500".')
  return { label, amount_cents: wholeNumber(cents) }
}

function location(text: string): object {
  const [id, state] = lastColon(text)
  if (id === '' || state === '') throw new InvalidArgumentError('It takes id:state, like "main:CA".')
  return { id, state }
}

/** What stands before and after the last colon. */
function lastColon(text: string): [string, string] {
  const at = text.lastIndexOf(':')
  return at < 0 ? ['', text] : [text.slice(0, at), text.slice(at + 1)]
}
