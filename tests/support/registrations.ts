import { randomBytes, randomUUID } from 'node:crypto'
import * as tenants from '../../application/access/tenants.ts'
import type { Application } from '../../application/commands/application.ts'
import type { CommandContext } from '../../application/commands/command-context.ts'
import { CommandHandler } from '../../application/commands/command-handler.ts'
import * as carriers from '../../application/parties/carriers.ts'
import * as employers from '../../application/parties/employers.ts'
import { issue, type NewPolicy, prepareIssue } from '../../application/policies/policies.ts'
import { isMovable } from '../../application/ports/clock.ts'
import { isRejection, type Rejection } from '../../domain/kernel/rejection.ts'
import type { PolicyTerms } from '../../domain/policies/policy.ts'
import { MasterKeys } from '../../infrastructure/crypto/master-keys.ts'
import { SystemRandomness } from '../../infrastructure/randomness.ts'
import { PostgresProjectionStore } from '../../infrastructure/read-models/projection-store.ts'
import { PostgresReadDatabase } from '../../infrastructure/read-models/read-database.ts'
import { EncryptedPersonalData } from '../../infrastructure/secrets/personal-data.ts'
import { PostgresSecretVault } from '../../infrastructure/secrets/vault.ts'
import type { Projection } from '../../projections/runtime/projection.ts'
import { Projections } from '../../projections/runtime/projections.ts'
import { createTestDatabase } from './database.ts'
import { gate } from './gate.ts'
import { newFein } from './seed.ts'
import { openWorkbench, type Workbench } from './workbench.ts'

const masterKeys = new MasterKeys([randomBytes(32)])

/** The application of one process, on a real log and database; read models are nobody's here. */
export interface RegistrationProcess {
  readonly app: Application
  readonly bench: Workbench
}

/**
 * Opens the application as one more process would: a log, caches and a connection pool of its own.
 * @param url of the database, by default one of its own.
 */
export async function openRegistrationProcess(
  url?: string,
  options: Parameters<typeof openWorkbench>[1] = {},
): Promise<RegistrationProcess> {
  const bench = await openWorkbench(url, options)
  const { pool } = bench.database
  const vault = new PostgresSecretVault(pool, masterKeys, bench.clock)
  const personalData = await EncryptedPersonalData.open({ pool, vault, masterKeys, clock: bench.clock })
  const { log, registry, clock, commands, faults } = bench
  const app = {
    log,
    registry,
    clock,
    commands,
    faults,
    vault,
    personalData,
    randomness: new SystemRandomness(clock),
    readModels: { reached: async () => true, awaitProjections: async () => true },
  } as unknown as Application
  return { app, bench }
}

/** Read models of a process, and its application with them; who starts them stops them. */
export async function withReadModels(
  { app, bench }: RegistrationProcess,
  of: readonly Projection[],
): Promise<{ readonly projections: Projections; readonly app: Application }> {
  const { log, registry, leases, clock, notices, database } = bench
  const store = new PostgresProjectionStore(database)
  const projections = new Projections({ projections: of, log, registry, leases, clock, notices, store })
  await projections.start()
  const read = new PostgresReadDatabase(database.pool)
  return { projections, app: { ...app, readModels: projections, read } }
}

/** Processes on a database of their own; the first two share the clock with all others, as they share the operator's. */
export interface RegistrationProcesses {
  readonly one: RegistrationProcess
  readonly two: RegistrationProcess
  /** Another one: nothing that an earlier one saw is known to it. */
  open(): Promise<RegistrationProcess>
  close(): Promise<void>
}

export async function openRegistrationProcesses(): Promise<RegistrationProcesses> {
  const database = await createTestDatabase()
  const opened: RegistrationProcess[] = []
  const open = async () => {
    const process = await openRegistrationProcess(database.url, opened[0] && { clock: opened[0].bench.clock })
    opened.push(process)
    return process
  }
  return {
    one: await open(),
    two: await open(),
    open,
    async close() {
      for (const { bench } of opened) await bench.close()
      await database.drop()
    },
  }
}

/** What a command came to. @throws Error when it was refused. */
export function accepted<Outcome>(outcome: Outcome | Rejection): Outcome {
  if (isRejection(outcome)) throw new Error(outcome.message)
  return outcome
}

/** A tenant with a carrier and an employer. */
export async function registerInsured(
  app: Application,
): Promise<{ readonly tenantId: string; readonly carrierId: string; readonly employerId: string }> {
  const context = operatorContext
  const { tenant_id: tenantId } = accepted(await tenants.register(app, { name: 'Tenant' }, context()))
  const carrier = { tenant_id: tenantId, name: 'Carrier', settlement_type: null }
  const { carrier_id: carrierId } = accepted(await carriers.register(app, carrier, context()))
  const employer = {
    tenant_id: tenantId,
    environment: 'live',
    legal_name: 'Insured',
    fein: newFein(),
  } as const
  const { employer_id: employerId } = accepted(
    await registerEmployer(
      app,
      { ...employer, address: null, contact_email: null, payroll_company_ids: [] },
      context(),
    ),
  )
  return { tenantId, carrierId, employerId }
}

/** Registers an employer, as the endpoint does it. */
export async function registerEmployer(
  app: Application,
  input: employers.NewEmployer,
  context: CommandContext,
) {
  const registration = await employers.prepareRegistration(app, input, context)
  return isRejection(registration) ? registration : employers.register(app, registration, context)
}

/** Issues a policy, as the endpoint does it. */
export async function issuePolicy(app: Application, input: NewPolicy, context: CommandContext) {
  const issuing = await prepareIssue(app, input, context)
  return isRejection(issuing) ? issuing : issue(app, issuing, context)
}

/** A policy that says nothing of what it insures. */
export const NO_TERMS: PolicyTerms = {
  class_codes: [],
  states: [],
  locations: [],
  rates: [],
  fees: [],
  payroll_frequency: 'WEEKLY',
  billing_type: null,
}

/** A policy of an insured from 2020 to the end of the century, in progress unless `of` says otherwise. */
export function newPolicy(
  of: Pick<NewPolicy, 'employer_id' | 'carrier_id' | 'policy_number'> & Partial<NewPolicy>,
): NewPolicy {
  return {
    status: 'in_progress',
    effective_date: '2020-01-01',
    expiration_date: '2099-12-31',
    ...NO_TERMS,
    annual_premium_cents: null,
    overtime_exclusion: false,
    ...of,
  }
}

/** A command of an operator, with an id of its own unless it is a retry. */
export function operatorContext(commandId: string = randomUUID()): CommandContext {
  const actor = { type: 'operator', id: 'operator' } as const
  return { actor, tenantId: null, environment: null, correlationId: 'test', commandId }
}

/** Moves the clock that an application goes by. @param to epoch milliseconds. */
export function moveClock({ clock }: Pick<Application, 'clock'>, to: number): void {
  if (!isMovable(clock)) throw new Error('the test moves the clock')
  clock.moveTo(to)
}

/** Where an attempt dies: before or after it writes to a stream of a category. */
export interface CrashPoint {
  readonly category: string
  readonly at: 'before' | 'after'
}

export class Crashed extends Error {
  override readonly name = 'Crashed'
}

/** The application with a process that dies once it comes to a point; what it stored by then stays. */
export function crashingAt(app: Application, { category, at }: CrashPoint): Application {
  return steppingAt(app, category, async (write) => {
    if (at === 'after') await write()
    throw new Crashed()
  })
}

/** The application with a process that waits before it writes to a stream of a category. */
export function waitingBefore(
  app: Application,
  category: string,
): { app: Application; arrived: Promise<void>; goOn(): void } {
  const { opened: arrived, open: arrive } = gate()
  const { opened: released, open: goOn } = gate()
  const waiting = steppingAt(app, category, async (write) => {
    arrive()
    await released
    return write()
  })
  return { app: waiting, arrived, goOn }
}

function steppingAt(
  app: Application,
  category: string,
  step: (write: () => Promise<unknown>) => Promise<unknown>,
): Application {
  const { log } = app
  const stepping = new Proxy(log, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target)
      if (typeof member !== 'function') return member
      if (name !== 'append') return member.bind(target)
      return (...args: Parameters<typeof log.append>) => {
        const write = () => log.append(...args)
        return args[0].startsWith(`${category}-`) ? step(write) : write()
      }
    },
  })
  return { ...app, log: stepping, commands: new CommandHandler(stepping, app.registry, app.clock) }
}
