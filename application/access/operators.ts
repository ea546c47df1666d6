import { createHash, timingSafeEqual } from 'node:crypto'
import {
  FIRST_ADMIN,
  nameContext,
  OPERATORS_ID,
  type Operator,
  OperatorCreated,
  type OperatorRole,
  type Operators,
  operators,
} from '../../domain/access/operators.ts'
import { isoTime } from '../../domain/kernel/calendar.ts'
import { isRejection, type Rejection } from '../../domain/kernel/rejection.ts'
import type { Application } from '../commands/application.ts'
import { type CommandContext, createdId } from '../commands/command-context.ts'
import type { Reads } from '../commands/command-handler.ts'
import { openAll } from '../commands/sealed-fields.ts'
import { sealFields } from '../commands/sealing.ts'
import { secretGone } from '../commands/secret-gone.ts'

/** An operator as it is shown, never with its token. */
export interface ShownOperator extends Omit<Operator, 'name' | 'token_hash' | 'status'> {
  readonly name: string
  readonly status: Operator['status'] | 'expired'
}

/** An operator with its token, which is shown this once and kept only as a hash. */
export interface IssuedOperator {
  readonly operator: ShownOperator
  readonly token: string
}

/** Everybody who may call the operator API, from the log and never from a read model. */
export async function allOperators({ commands }: Reads): Promise<Operators> {
  return (await commands.load(operators, OPERATORS_ID)).state
}

const TOKEN = /^op_[0-9a-f]{64}$/

/** True for a token of the issued form; of others only the setting's is one. */
export function isOperatorToken(value: string): boolean {
  return TOKEN.test(value)
}

/**
 * The operator that a token lets in.
 * @param firstToken by the setting: it is the first admin's until that is rotated or revoked.
 * @param now epoch milliseconds.
 */
export function operatorWith(
  all: Operators,
  token: string,
  firstToken: string,
  now: number,
): Operator | 'expired' | 'revoked' | 'unknown' {
  const presented = sha256(token)
  const isSame = (hash: Buffer) => timingSafeEqual(presented, hash)
  const first = all[FIRST_ADMIN]!
  const operator =
    Object.values(all).find(
      ({ token_hash }) => token_hash !== null && isSame(Buffer.from(token_hash, 'hex')),
    ) ?? (first.token_hash === null && isSame(sha256(firstToken)) ? first : undefined)
  if (!operator) return 'unknown'
  if (operator.status === 'revoked') return 'revoked'
  return hasExpired(operator, now) ? 'expired' : operator
}

/** Operators in the order of their creation; a name whose key was destroyed reads as erased. */
export async function listOperators(
  app: Reads & Pick<Application, 'personalData' | 'clock'>,
): Promise<readonly ShownOperator[]> {
  return shown(app, Object.values(await allOperators(app)))
}

/**
 * Creates an operator; its token works when this returns.
 * @param input.expires_at epoch milliseconds.
 * @returns a conflict when an earlier attempt under the same command created it: its token is gone.
 */
export async function create(
  app: Application,
  input: { readonly name: string; readonly role: OperatorRole; readonly expires_at: number | null },
  context: CommandContext,
): Promise<IssuedOperator | Rejection> {
  const operator_id = createdId(context, operators)
  const token = newToken(app)
  const subject = app.personalData.subjectId('person', `operator|${operator_id}`)
  const draft = {
    operator_id,
    name: input.name,
    role: input.role,
    created_at: isoTime(app.clock.now()),
    expires_at: input.expires_at === null ? null : isoTime(input.expires_at),
    token_hash: sha256(token).toString('hex'),
  }
  const data = await sealFields(app.personalData, OperatorCreated, draft, () => subject)
  const outcome = await app.commands.execute(operators, OPERATORS_ID, { type: 'Create', data }, context)
  if (isRejection(outcome)) return outcome
  return issued(app, outcome.state[operator_id]!, token, 'created')
}

/**
 * Gives an operator a new token; the old one is refused from the next request on.
 * @param expiresAt epoch milliseconds; undefined: it stays as it is.
 * @returns a conflict when an earlier attempt under the same command did: its token is gone.
 */
export async function rotate(
  app: Application,
  operatorId: string,
  expiresAt: number | null | undefined,
  context: CommandContext,
): Promise<IssuedOperator | Rejection> {
  const token = newToken(app)
  const command = {
    type: 'RotateToken',
    operatorId,
    tokenHash: sha256(token).toString('hex'),
    expiresAt: typeof expiresAt === 'number' ? isoTime(expiresAt) : expiresAt,
    at: isoTime(app.clock.now()),
  } as const
  const outcome = await app.commands.execute(operators, OPERATORS_ID, command, context)
  if (isRejection(outcome)) return outcome
  return issued(app, outcome.state[operatorId]!, token, 'rotated')
}

/** Ends an operator for good: its token is refused from the next request on. Again, it changes nothing. */
export async function revoke(
  app: Application,
  operatorId: string,
  reason: string | null,
  context: CommandContext,
): Promise<ShownOperator | Rejection> {
  const command = { type: 'Revoke', operatorId, reason } as const
  const outcome = await app.commands.execute(operators, OPERATORS_ID, command, context)
  if (isRejection(outcome)) return outcome
  const [operator] = await shown(app, [outcome.state[operatorId]!])
  return operator!
}

async function issued(app: Application, operator: Operator, token: string, done: string) {
  if (operator.token_hash !== sha256(token).toString('hex')) {
    return secretGone('operator', operator.operator_id, done)
  }
  const [one] = await shown(app, [operator])
  return { operator: one!, token }
}

async function shown(
  { personalData, clock }: Pick<Application, 'personalData' | 'clock'>,
  all: readonly Operator[],
): Promise<readonly ShownOperator[]> {
  const sealedNames = all.flatMap(({ operator_id, name }) =>
    name === null ? [] : [{ value: name, context: nameContext(operator_id) }],
  )
  const names = new Map(
    (await openAll(personalData, sealedNames)).map((text, at) => [sealedNames[at]!.value, text]),
  )
  return all.map(({ token_hash: _hash, name, status, ...one }) => ({
    ...one,
    name: name === null ? 'First admin' : names.get(name)!,
    status: status === 'active' && hasExpired(one, clock.now()) ? 'expired' : status,
  }))
}

function hasExpired({ expires_at }: Pick<Operator, 'expires_at'>, now: number): boolean {
  return expires_at !== null && Date.parse(expires_at) <= now
}

function newToken({ randomness }: Pick<Application, 'randomness'>): string {
  return `op_${randomness.hex(32)}`
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
