import { type ApiClient, mayActFor, mayUseCarrier } from '../../domain/access/api-client.ts'
import { isRejection, type Rejection, reject } from '../../domain/kernel/rejection.ts'
import { carrier } from '../../domain/parties/carrier.ts'
import { type Employer, employer } from '../../domain/parties/employer.ts'
import { type FeinNotation, mayBeSameFein } from '../../domain/parties/fein.ts'
import { normalizeRow, REPORT_RECORDS } from '../../domain/payroll/payroll-row.ts'
import {
  assignedPolicyNumber,
  IntakeReceived,
  intake,
  type ReceivedIntake,
} from '../../domain/policies/intake.ts'
import { hasLostNumber, policy } from '../../domain/policies/policy.ts'
import { carrierIdOf } from '../access/named-policy.ts'
import { stateOf } from '../access/owned-by.ts'
import type { Application } from '../commands/application.ts'
import { type CommandContext, createdId } from '../commands/command-context.ts'
import type { Reads } from '../commands/command-handler.ts'
import { feinReservation, holderOf, policyNumberReservation } from '../commands/reservations.ts'
import { openedOne } from '../commands/sealed-fields.ts'
import { employerSubject, personSubject, sealFields } from '../commands/sealing.ts'
import { within } from '../commands/verbs.ts'
import * as employers from '../parties/employers.ts'
import { SafeError } from '../ports/safe-error.ts'
import { ServiceUnavailable } from '../ports/unavailable.ts'
import * as policies from './policies.ts'

/** An employer as it is sent; what is missing is null. */
export interface IntakeEmployer {
  readonly legal_name: string
  /** `XX-XXXXXXX`. */
  readonly fein: string
  readonly entity_type: string | null
  readonly address: Readonly<Record<'line1' | 'city' | 'state' | 'zip', string>>
  readonly contact_name: string | null
  readonly contact_email: string | null
  readonly phone: string | null
  readonly email: string | null
}

/** An owner or officer. */
export interface IntakeOwner {
  readonly first_name: string
  readonly last_name: string
  /** 0 to 100. */
  readonly ownership_percentage: number | null
  readonly excluded: boolean
  readonly class_code: string | null
  readonly dob: string | null
  readonly title: string | null
}

export interface IntakeRequest {
  readonly key: string
  readonly carrierId: string | null
  readonly employer: IntakeEmployer
  readonly feinNotation: FeinNotation
  readonly owners: readonly IntakeOwner[]
  /** `policy_number` null: one is assigned. */
  readonly policy: Omit<ReceivedIntake['policy'], 'policy_number'> & { readonly policy_number: string | null }
}

/** What an intake came to. */
export interface TakenIn {
  readonly employerId: string
  readonly policyId: string
  /** False when an earlier call, or one at the same time, completed it. */
  readonly isNew: boolean
}

/** An intake was received and broke off before it was complete; the next call with its key goes on with it. */
export class IntakeInterrupted extends SafeError {
  override readonly name = 'IntakeInterrupted'
  readonly intakeId: string
  constructor(intakeId: string) {
    super(
      'The intake broke off before it was complete; send it again with the same idempotency_key to finish it',
    )
    this.intakeId = intakeId
  }
}

type Client = Pick<ApiClient, 'tenant_id' | 'environment' | 'carrier_ids' | 'employer_ids'>

/** How long an intake waits at a hold, and how often it looks, in real milliseconds. */
const HOLD = { mostMs: 30_000, everyMs: 20 } as const

/**
 * Creates an employer and a direct-billing policy in progress, once for a key, tenant and environment; an employer of
 * the tenant that has the FEIN is taken as it is. Everything is checked before anything is stored. From then on the
 * intake is decided: whatever changes, the next call with its key finishes what was sent first, under the same ids.
 * @throws IntakeInterrupted
 */
export async function takeIn(
  app: Application,
  client: Client,
  request: IntakeRequest,
  context: CommandContext,
): Promise<TakenIn | Rejection> {
  const carrierId = carrierIdOf(client, request.carrierId)
  if (typeof carrierId !== 'string') return carrierId
  const id = app.personalData.fingerprint(
    'intake',
    `${client.tenant_id}|${client.environment}|${request.key}`,
  )
  const scoped = within(context, client)
  const known = (await app.commands.load(intake, id)).state
  if (known) {
    const { received } = known
    if (!mayUseCarrier(client, received.carrier_id)) return outside('carrier_id')
    if (!mayActFor(client, received.employer_id)) return outside('employer.fein')
    const { completed } = known
    if (completed) return { employerId: completed.employer_id, policyId: completed.policy_id, isNew: false }
    return finish(app, received, scoped)
  }
  const refusal = await refuse(app, client, request, carrierId)
  if (refusal) return refusal
  const data = await received(app, client, { ...request, carrierId }, id, scoped)
  const outcome = await app.commands.execute(intake, id, { type: 'Receive', data }, scoped)
  if (isRejection(outcome)) return outcome
  // another call may have been faster: what it sent counts
  return finish(app, outcome.state!.received, scoped)
}

/** Why an intake would not be received at this moment, null when it would. */
async function refuse(
  app: Reads & Pick<Application, 'personalData' | 'clock'>,
  client: Client,
  request: IntakeRequest,
  carrierId: string,
): Promise<Rejection | null> {
  const { commands, personalData } = app
  const { tenant_id, environment } = client
  const insurer = await stateOf({ commands }, carrier, carrierId)
  if (insurer?.tenant_id !== tenant_id) {
    const why = 'carrier_id names no carrier of this account'
    return reject('not_found', 'carrier_not_found', why, 'carrier_id')
  }
  if (!mayUseCarrier(client, carrierId)) return outside('carrier_id')
  const owner = await holderOf(app, feinReservation(personalData, environment, request.employer.fein))
  const insured = owner === null ? null : (await commands.load(employer, owner)).state
  const isOurs = insured?.tenant_id === tenant_id
  // a key for certain employers creates no others, and hears nothing of those of other accounts
  if (client.employer_ids !== 'all' && !(isOurs && mayActFor(client, insured.employer_id))) {
    return outside('employer.fein')
  }
  if (insured && !isOurs) return feinConflict()
  if (insured && !mayBeSameFein(request.feinNotation, insured.fein_notation)) return notationConflict(insured)
  const { policy_number: number } = request.policy
  return number !== null && (await isInForce(app, client, number))
    ? reject(
        'conflict',
        'policy_number_taken',
        'policy.policy_number is the number of an active policy',
        'policy.policy_number',
      )
    : null
}

async function isInForce(
  app: Reads & Pick<Application, 'personalData' | 'clock'>,
  { tenant_id, environment }: Client,
  number: string,
): Promise<boolean> {
  const value = policyNumberReservation(app.personalData, tenant_id, environment, number)
  const holder = await holderOf(app, value)
  const state = holder === null ? null : (await app.commands.load(policy, holder)).state
  return state !== null && !hasLostNumber(state, app.clock.now())
}

/** What is kept of an intake; its FEIN is reserved before. */
async function received(
  app: Application,
  { tenant_id, environment }: Client,
  { carrierId, employer: sent, feinNotation, owners, policy: terms }: IntakeRequest & { carrierId: string },
  intake_id: string,
  context: CommandContext,
): Promise<ReceivedIntake> {
  const { personalData } = app
  // not the request's own: a key whose intake was refused may be used again under another
  const command_id = app.randomness.commandId()
  const steps = { ...context, commandId: command_id, mayRepeat: true }
  const { fein } = sent
  const employer_id = await employers.reserveFein(app, { tenant_id, environment, fein }, steps)
  const policy_number = terms.policy_number ?? assignedPolicyNumber(createdId(steps, policy))
  const identities = owners.map(({ first_name, last_name }) => {
    // as payroll knows a person by name: one erasure finds both
    const { identity } = normalizeRow({ first_name, last_name }, 1, REPORT_RECORDS)
    return personSubject(personalData, employer_id, identity)
  })
  return sealFields(
    personalData,
    IntakeReceived,
    {
      intake_id,
      tenant_id,
      environment,
      command_id,
      carrier_id: carrierId,
      employer_id,
      employer: JSON.stringify(sent),
      fein_notation: feinNotation === 'person' ? 'person' : 'employer',
      ...(feinNotation === 'digits' && { is_fein_bare: true as const }),
      owners: owners.map((one) => ({ person: JSON.stringify(one), excluded: one.excluded })),
      policy: { ...terms, policy_number },
    },
    ({ path }) =>
      path[0] === 'owners' ? identities[Number(path[1])]! : employerSubject(personalData, employer_id),
  )
}

/** Goes on with an intake from wherever it stands: each step finds what an earlier attempt did. @throws IntakeInterrupted */
async function finish(
  app: Application,
  intakeOf: ReceivedIntake,
  context: CommandContext,
): Promise<TakenIn | Rejection> {
  const { intake_id, command_id } = intakeOf
  const steps = { ...context, commandId: command_id, mayRepeat: true }
  try {
    await meet(app, 'unreachable')
    const insured = await registered(app, intakeOf, steps)
    if (isRejection(insured)) {
      const refuse = { type: 'Refuse', commandId: command_id, reason: insured.code } as const
      await app.commands.execute(intake, intake_id, refuse, steps)
      return insured
    }
    await meet(app, 'decline')
    const issuing = await policies.prepareIssue(app, newPolicy(intakeOf), steps)
    const issued = isRejection(issuing) ? issuing : await policies.issue(app, issuing, steps)
    // everything that it depends on was checked, and does not change
    if (isRejection(issued)) throw new Error(`The policy of an intake was refused: ${issued.code}`)
    await meet(app, 'timeout')
    const { employer_id: employerId } = insured
    const { policy_id: policyId } = issued
    const complete = { type: 'Complete', employerId, policyId } as const
    const outcome = await app.commands.execute(intake, intake_id, complete, steps)
    if (isRejection(outcome)) throw new Error(`An intake could not be completed: ${outcome.code}`)
    // the employer may have been registered by another call a moment ago
    if (outcome.position !== null) await app.readModels.awaitProjections(employer, outcome.position)
    return { employerId, policyId, isNew: outcome.events.length > 0 }
  } catch (error) {
    if (error instanceof Stopped || error instanceof ServiceUnavailable)
      throw new IntakeInterrupted(intake_id)
    throw error
  }
}

/** An entity type that says that the employer is a person. */
const SOLE_PROPRIETOR = /\bsole|\bindividual/i

/** The employer of an intake, registered unless it is there. */
async function registered(
  app: Application,
  received: ReceivedIntake,
  context: CommandContext,
): Promise<Employer | Rejection> {
  const { tenant_id, environment, employer_id, intake_id, employer: text, fein_notation } = received
  const feinNotation = received.is_fein_bare ? 'digits' : fein_notation
  const present = (await app.commands.load(employer, employer_id)).state
  if (!present) {
    const sent = await openedOne(app.personalData, IntakeReceived, { intake_id, employer: text })
    const plain = JSON.parse(sent.employer) as IntakeEmployer
    const { legal_name, fein, entity_type, address, contact_email, email } = plain
    const registration = await employers.prepareRegistration(
      app,
      {
        tenant_id,
        environment,
        legal_name,
        fein,
        feinNotation,
        isPerson: feinNotation === 'person' || SOLE_PROPRIETOR.test(entity_type ?? ''),
        address,
        contact_email: contact_email ?? email,
        payroll_company_ids: [],
      },
      context,
    )
    const made = isRejection(registration)
      ? registration
      : await employers.register(app, registration, context)
    if (isRejection(made) && made.code !== 'fein_taken') return made
  }
  // a concurrent request that reserved the FEIN under this id may have registered it
  const { state } = await app.commands.load(employer, employer_id)
  if (state?.tenant_id !== tenant_id) return feinConflict()
  return mayBeSameFein(feinNotation, state.fein_notation) ? state : notationConflict(state)
}

function newPolicy({ employer_id, carrier_id, policy: sent }: ReceivedIntake): policies.NewPolicy {
  const { class_code, state, el_limit_tier: _tier, ...terms } = sent
  return {
    ...terms,
    employer_id,
    carrier_id,
    status: 'in_progress',
    class_codes: [class_code],
    states: [state],
    locations: [],
    rates: [],
    fees: [],
    payroll_frequency: 'WEEKLY',
    billing_type: 'DIRECT_BILLING',
    overtime_exclusion: false,
  }
}

class Stopped extends Error {}

/**
 * Meets an injected fault: `unreachable` before the employer is registered, `decline` before the policy is issued,
 * `timeout` before the intake is recorded as complete. A hold is waited for where the employer is there and the policy
 * is not.
 */
async function meet({ faults }: Application, mode: 'unreachable' | 'decline' | 'timeout'): Promise<void> {
  if ((await faults.take('intake', [mode])) !== null) throw new Stopped()
  if (mode !== 'decline') return
  const deadline = performance.now() + HOLD.mostMs
  while (await faults.holding('intake')) {
    if (performance.now() > deadline) throw new Stopped()
    await new Promise((resolve) => setTimeout(resolve, HOLD.everyMs))
  }
}

function outside(field: 'carrier_id' | 'employer.fein'): Rejection {
  return reject('forbidden', 'out_of_scope', `${field} lies outside the scope of the key`, field)
}

function feinConflict(): Rejection {
  const why = 'An employer of another account has this employer.fein'
  return reject('conflict', 'fein_conflict', why, 'employer.fein')
}

/** Nine digits may be the number of a company and of another, unrelated person; one of both can be taken in. */
function notationConflict({ fein_notation }: Employer): Rejection {
  const [known, form] =
    fein_notation === 'person' ? ["a person's", 'XXX-XX-XXXX'] : ["an employer's", 'XX-XXXXXXX']
  const why = `An employer has the digits of employer.fein as ${known} number; send it as ${form} if it is meant`
  return reject('conflict', 'fein_notation_conflict', why, 'employer.fein')
}
