import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  AgentCredentialIssued,
  AgentCredentialRevoked,
  agentCredential,
} from '../../../domain/access/agent-credential.ts'
import {
  ApiClientDeactivated,
  ApiClientIssued,
  ApiClientSecretRotated,
  apiClient,
} from '../../../domain/access/api-client.ts'
import {
  InboundConnectionDeactivated,
  InboundConnectionOpened,
  inboundConnection,
} from '../../../domain/access/inbound-connection.ts'
import {
  OperatorCreated,
  OperatorRevoked,
  type OperatorRole,
  OperatorTokenRotated,
  operators,
} from '../../../domain/access/operators.ts'
import { TenantRegistered, tenant } from '../../../domain/access/tenant.ts'
import { aggregates } from '../../../domain/catalogue.ts'
import {
  IdempotencyKeyAnswered,
  IdempotencyKeyClaimed,
  IdempotencyKeyReleased,
  idempotencyKey,
} from '../../../domain/kernel/idempotency-key.ts'
import { ReservationReleased, reservation, ValueReserved } from '../../../domain/kernel/reservation.ts'
import type { Sealed } from '../../../domain/kernel/sealed.ts'
import { dataSubject, PersonalDataErased } from '../../../domain/operations/data-subject.ts'
import { installation, KeyCheckValueRecorded } from '../../../domain/operations/installation.ts'
import { OperatorActed, operatorAction } from '../../../domain/operations/operator-action.ts'
import { OperatorAlertAcknowledged, operatorAlert } from '../../../domain/operations/operator-alert.ts'
import {
  ActionApproved,
  ActionDeclined,
  ActionRequested,
  pendingActions,
} from '../../../domain/operations/pending-actions.ts'
import {
  CLOCK_SKEW_LIMIT_MS,
  ProcessClockAgreed,
  ProcessClockDiffered,
  processClock,
} from '../../../domain/operations/process-clock.ts'
import { AlertRaised, raisedAlert } from '../../../domain/operations/raised-alert.ts'
import { ReadModelRebuildHeldBack, readModelRebuild } from '../../../domain/operations/read-model-rebuild.ts'
import { VirtualClockMoved, virtualClock } from '../../../domain/operations/virtual-clock.ts'
import { CarrierRegistered, carrier } from '../../../domain/parties/carrier.ts'
import {
  EmployeeChangesRecorded,
  EmployeeSyncReceived,
  employeeSync,
} from '../../../domain/parties/employee-sync.ts'
import {
  EmployerDetailsChanged,
  EmployerLinkedToPayrollCompany,
  EmployerRegistered,
  EmployerUnlinkedFromPayrollCompany,
  employer,
} from '../../../domain/parties/employer.ts'
import { PayrollCompanyRegistered, payrollCompany } from '../../../domain/parties/payroll-company.ts'
import {
  hasLostNumber,
  PolicyActivated,
  PolicyCancelled,
  PolicyIssued,
  PolicyNotActivated,
  PolicyTermsChanged,
  policy,
  statusOn,
} from '../../../domain/policies/policy.ts'
import { decisions } from '../../support/decider-spec.ts'
import { policyTerms } from '../../support/payroll.ts'

const ID = 'a'.repeat(24)
const [ONE, TWO, THREE] = ['1', '2', '3'].map((digit) => digit.repeat(24)) as [string, string, string]
const OWNED = { tenant_id: ID, environment: 'live' } as const

// ---- parties: each row reads given, when, then

const tenantA = TenantRegistered.of({ tenant_id: ID, name: 'Acme' })
decisions(tenant, [
  ['is registered', [], { type: 'Register', data: tenantA.data }, tenantA],
  ['is registered once', [tenantA], { type: 'Register', data: tenantA.data }, 'tenant_exists'],
])

const mutual = CarrierRegistered.of({ carrier_id: ID, tenant_id: ID, name: 'Mutual', settlement_type: 'fbo' })
decisions(carrier, [
  ['is registered', [], { type: 'Register', data: mutual.data }, mutual],
  ['is registered once', [mutual], { type: 'Register', data: mutual.data }, 'carrier_exists'],
])

const payCo = PayrollCompanyRegistered.of({ payroll_company_id: ID, tenant_id: ID, name: 'PayCo' })
decisions(payrollCompany, [
  ['is registered', [], { type: 'Register', data: payCo.data }, payCo],
  ['is registered once', [payCo], { type: 'Register', data: payCo.data }, 'payroll_company_exists'],
])

const sealedText = 'sealed:1' as Sealed
const bakery = EmployerRegistered.of({
  employer_id: ID,
  ...OWNED,
  legal_name: 'Bakery LLC',
  fein: sealedText,
  address: null,
  contact_email: null,
  payroll_company_ids: [ONE, TWO],
})
const linked = (payroll_company_id: string) =>
  EmployerLinkedToPayrollCompany.of({ employer_id: ID, payroll_company_id })
const unlinked = (payroll_company_id: string) =>
  EmployerUnlinkedFromPayrollCompany.of({ employer_id: ID, payroll_company_id })
const renamed = EmployerDetailsChanged.of({ employer_id: ID, legal_name: 'Bread LLC' })
const links = (...payrollCompanyIds: string[]) =>
  ({ type: 'Change', details: {}, payrollCompanyIds }) as const
decisions(employer, [
  ['is registered', [], { type: 'Register', data: bakery.data }, bakery],
  ['is registered once', [bakery], { type: 'Register', data: bakery.data }, 'employer_exists'],
  ['that is unknown does not change', [], links(), 'employer_not_found'],
  ['changes details', [bakery], { type: 'Change', details: { legal_name: 'Bread LLC' } }, renamed],
  ['without a change stays as it is', [bakery], { type: 'Change', details: {} }, []],
  [
    'gets the links that are new, loses those left out',
    [bakery],
    links(TWO, THREE),
    [unlinked(ONE), linked(THREE)],
  ],
  ['keeps the links it has', [bakery], links(TWO, ONE), []],
  ['takes a link named twice once', [bakery], links(ONE, TWO, THREE, THREE), linked(THREE)],
  ['loses all links', [bakery, unlinked(ONE), linked(THREE)], links(), [unlinked(TWO), unlinked(THREE)]],
])

const sync = EmployeeSyncReceived.of({
  file_id: ID,
  sync_id: ONE,
  ...OWNED,
  employer_id: TWO,
  sender_id: 'client',
  record_count: 2,
  chunk_count: 2,
})
const hire = {
  subject: 'person/1',
  action: 'hire',
  record: sealedText,
  effective_date: '2026-01-05',
} as const
const changes = (chunk: number, last: boolean) =>
  EmployeeChangesRecorded.of({ file_id: ID, employer_id: TWO, chunk, last, changes: [hire] })
const record = { type: 'RecordChanges', changes: [hire] } as const
decisions(employeeSync, [
  ['is received', [], { type: 'Receive', data: sync.data }, sync],
  ['is received once', [sync], { type: 'Receive', data: sync.data }, 'sync_exists'],
  ['that is unknown takes no changes', [], record, 'sync_not_found'],
  ['numbers its chunks', [sync], record, changes(0, false)],
  ['marks the last one', [sync, changes(0, false)], record, changes(1, true)],
  ['takes no more than it said', [sync, changes(0, false), changes(1, true)], record, 'out_of_order'],
])

// ---- policies

const issued = PolicyIssued.of(policyTerms({ policy_id: ID, states: ['CA'] }))
const toNevada = { type: 'ChangeTerms', terms: { states: ['NV'], payroll_frequency: 'WEEKLY' } } as const
const movedToNevada = PolicyTermsChanged.of({ policy_id: ID, states: ['NV'] })
const cancelled = PolicyCancelled.of({ policy_id: ID, reason: 'sold' })
const cancel = { type: 'Cancel', reason: 'sold' } as const
const quoted = PolicyIssued.of({ ...issued.data, status: 'in_progress' })
const activate = { type: 'Activate' } as const
const activated = PolicyActivated.of({ policy_id: ID })
const taken = { reason: 'policy_number_taken', holder: ONE } as const
const notActivated = PolicyNotActivated.of({
  policy_id: ID,
  reason: taken.reason,
  holder_policy_id: taken.holder,
})
const recordNotActivated = {
  type: 'RecordNotActivated',
  reason: taken.reason,
  holderPolicyId: taken.holder,
} as const
test.each([
  ['2027-01-01T04:59:59.999Z', 'active', false],
  ['2027-01-01T05:00:00.000Z', 'expired', true],
])('a policy until 31 December at %s is %s: its last day is New York’s', (time, status, lostNumber) => {
  expect(statusOn(issued.data, Date.parse(time))).toBe(status)
  expect(hasLostNumber(issued.data, Date.parse(time))).toBe(lostNumber)
})

decisions(policy, [
  ['is issued', [], { type: 'Issue', data: issued.data }, issued],
  ['is issued once', [issued], { type: 'Issue', data: issued.data }, 'policy_exists'],
  ['that is unknown has no terms', [], { type: 'ChangeTerms', terms: {} }, 'policy_not_found'],
  [
    'changes only terms that differ',
    [issued],
    { ...toNevada, terms: { ...toNevada.terms, states: ['NV'] } },
    movedToNevada,
  ],
  ['has no change a second time', [issued, movedToNevada], { ...toNevada, terms: { states: ['NV'] } }, []],
  ['is cancelled', [issued], cancel, cancelled],
  ['is cancelled once', [issued, cancelled], cancel, []],
  ['that is unknown is not cancelled', [], cancel, 'policy_not_found'],
  ['in progress becomes active', [quoted], activate, activated],
  ['becomes active once', [quoted, activated], activate, []],
  ['that was issued active stays so', [issued], activate, []],
  ['that is cancelled is not activated', [quoted, cancelled], activate, 'policy_cancelled'],
  ['that became active can be cancelled', [quoted, activated], cancel, cancelled],
  ['that is unknown is not activated', [], activate, 'policy_not_found'],
  ['keeps why it is not active', [quoted], recordNotActivated, notActivated],
  ['may become active after that', [quoted, notActivated], activate, activated],
  [
    'that is cancelled keeps its terms',
    [issued, cancelled],
    { type: 'ChangeTerms', terms: {} },
    'policy_cancelled',
  ],
])

// ---- access

const key = AgentCredentialIssued.of({
  credential_id: ID,
  agent_name: 'Agent',
  entity_type: 'employer',
  entity_id: ID,
  sandbox: false,
  key_hash: 'hash',
  api_key_prefix: 'mcp_',
  created_by: null,
})
const revoked = AgentCredentialRevoked.of({ credential_id: ID })
decisions(agentCredential, [
  ['is issued', [], { type: 'Issue', data: key.data }, key],
  ['is issued once', [key], { type: 'Issue', data: key.data }, 'credential_exists'],
  ['is revoked', [key], { type: 'Revoke' }, revoked],
  ['is revoked once', [key, revoked], { type: 'Revoke' }, []],
  ['that is unknown is not revoked', [], { type: 'Revoke' }, 'credential_not_found'],
])

const client = ApiClientIssued.of({
  client_id: 'service_live_cli_1',
  ...OWNED,
  name: 'Client',
  products: ['all'],
  carrier_ids: 'all',
  employer_ids: 'all',
  request_signing: 'off',
  secret_hash: 'first',
})
const rotate = { type: 'RotateSecret', secretHash: 'second' } as const
const rotated = ApiClientSecretRotated.of({ client_id: 'service_live_cli_1', secret_hash: 'second' })
const clientOff = ApiClientDeactivated.of({ client_id: 'service_live_cli_1' })
decisions(apiClient, [
  ['is issued', [], { type: 'Issue', data: client.data }, client],
  ['is issued once', [client], { type: 'Issue', data: client.data }, 'client_exists'],
  ['gets another secret', [client], rotate, rotated],
  ['gets another secret again', [client, rotated], rotate, rotated],
  ['is deactivated', [client], { type: 'Deactivate' }, clientOff],
  ['is deactivated once', [client, clientOff], { type: 'Deactivate' }, []],
  ['that is deactivated gets no secret', [client, clientOff], rotate, 'client_deactivated'],
  ['that is unknown gets no secret', [], rotate, 'client_not_found'],
  ['that is unknown is not deactivated', [], { type: 'Deactivate' }, 'client_not_found'],
])

const FOREVER = null
const AT = '2026-11-29T12:00:00.000Z'
const LATER = '2026-11-30T12:00:00.000Z'
const person = (operator_id: string, role: OperatorRole, expires_at: string | null = FOREVER) =>
  OperatorCreated.of({
    operator_id,
    name: 'sealed' as Sealed,
    role,
    created_at: AT,
    expires_at,
    token_hash: 'first',
  })
const createOperator = ({ data }: ReturnType<typeof person>) => ({ type: 'Create', data }) as const
const rotateToken = (operatorId: string, expiresAt?: string | null) =>
  ({ type: 'RotateToken', operatorId, tokenHash: 'second', expiresAt, at: AT }) as const
const newToken = (operator_id: string, expires_at: string | null = FOREVER) =>
  OperatorTokenRotated.of({ operator_id, expires_at, token_hash: 'second' })
const revokeOperator = (operatorId: string) => ({ type: 'Revoke', operatorId, reason: 'left' }) as const
const gone = (operator_id: string) => OperatorRevoked.of({ operator_id, reason: 'left' })
decisions(operators, [
  ['take somebody in', [], createOperator(person(ONE, 'support')), person(ONE, 'support')],
  [
    'take nobody in whose token has expired',
    [],
    createOperator(person(ONE, 'admin', AT)),
    { kind: 'invalid', code: 'expiry_past' },
  ],
  ['give the first admin a token of its own', [], rotateToken('operator'), newToken('operator')],
  [
    'give another token until the same time',
    [person(ONE, 'auditor', LATER)],
    rotateToken(ONE),
    newToken(ONE, LATER),
  ],
  ['give another token for ever', [person(ONE, 'auditor', LATER)], rotateToken(ONE, null), newToken(ONE)],
  ['give another token for a while', [person(ONE, 'auditor')], rotateToken(ONE, LATER), newToken(ONE, LATER)],
  [
    'give no token that has expired',
    [person(ONE, 'auditor', LATER)],
    rotateToken(ONE, AT),
    { kind: 'invalid', code: 'expiry_past' },
  ],
  [
    'give no token to who was revoked',
    [person(ONE, 'auditor'), gone(ONE)],
    rotateToken(ONE),
    'operator_revoked',
  ],
  ['give no token to who is unknown', [], rotateToken(ONE), 'operator_not_found'],
  ['let somebody go', [person(ONE, 'support')], revokeOperator(ONE), gone(ONE)],
  ['let somebody go once', [person(ONE, 'support'), gone(ONE)], revokeOperator(ONE), []],
  ['let nobody go who is unknown', [], revokeOperator(ONE), 'operator_not_found'],
  [
    'let the first admin go where there is another',
    [person(ONE, 'admin')],
    revokeOperator('operator'),
    gone('operator'),
  ],
  ['keep the last admin', [], revokeOperator('operator'), 'last_admin'],
  ['keep the last admin beside others', [person(ONE, 'operator')], revokeOperator('operator'), 'last_admin'],
  [
    'keep the last admin beside one who was revoked',
    [person(ONE, 'admin'), gone(ONE)],
    revokeOperator('operator'),
    'last_admin',
  ],
  [
    'keep the last admin beside one whose token expires',
    [person(ONE, 'admin', LATER)],
    revokeOperator('operator'),
    'last_admin',
  ],
  ['let the token of the last admin never expire', [], rotateToken('operator', LATER), 'last_admin'],
])

const asked = (action_id: string, requested_at = AT, expires_at = LATER) =>
  ActionRequested.of({
    action_id,
    operation: 'releaseDebit',
    targets: [THREE],
    reason: null,
    requested_by: 'operator',
    requested_at,
    expires_at,
  })
const approve = (by: string, at = AT, actionId = ONE) => ({ type: 'Approve', actionId, by, at }) as const
const approved = ActionApproved.of({ action_id: ONE, approved_by: TWO })
const decline = (by: string, at = AT) =>
  ({ type: 'Decline', actionId: ONE, by, reason: 'Wrong file', at }) as const
const declined = ActionDeclined.of({ action_id: ONE, declined_by: TWO, reason: 'Wrong file' })
decisions(pendingActions, [
  ['take in what somebody asks for', [], { type: 'Request', data: asked(ONE).data }, asked(ONE)],
  ['are approved by another operator', [asked(ONE)], approve(TWO), approved],
  ['are not approved by who asked', [asked(ONE)], approve('operator'), 'second_operator_required'],
  ['are approved once', [asked(ONE), approved], approve(THREE), 'action_approved'],
  ['go on for who approved them', [asked(ONE), approved], approve(TWO), []],
  ['are declined by another operator', [asked(ONE)], decline(TWO), declined],
  [
    'are withdrawn by who asked',
    [asked(ONE)],
    decline('operator'),
    ActionDeclined.of({ action_id: ONE, declined_by: 'operator', reason: 'Wrong file' }),
  ],
  ['are declined once', [asked(ONE), declined], decline(THREE), 'action_declined'],
  ['stay declined for who declined them', [asked(ONE), declined], decline(TWO), []],
  ['that were declined are not approved', [asked(ONE), declined], approve(TWO), 'action_declined'],
  ['that were approved are not declined', [asked(ONE), approved], decline(TWO), 'action_approved'],
  ['that have expired are not declined', [asked(ONE)], decline(TWO, LATER), 'pending_action_not_found'],
  ['expire', [asked(ONE)], approve(TWO, LATER), 'pending_action_not_found'],
  ['that are unknown are not approved', [], approve(TWO), 'pending_action_not_found'],
  [
    'that have expired go with the next request',
    [asked(ONE), asked(TWO, LATER, '2026-12-01T12:00:00.000Z')],
    approve(TWO),
    'pending_action_not_found',
  ],
])

const opened = InboundConnectionOpened.of({ connection_id: ID, ...OWNED, secret_ref: 'ref' })
const closed = InboundConnectionDeactivated.of({ connection_id: ID })
decisions(inboundConnection, [
  ['is opened', [], { type: 'Open', data: opened.data }, opened],
  ['is opened once', [opened], { type: 'Open', data: opened.data }, 'connection_exists'],
  ['is deactivated', [opened], { type: 'Deactivate' }, closed],
  ['is deactivated once', [opened, closed], { type: 'Deactivate' }, []],
  ['that is unknown is not deactivated', [], { type: 'Deactivate' }, 'connection_not_found'],
])

// ---- uniqueness

const ofFein = (owner_id: string) => ({ kind: 'fein', fingerprint: 'f', owner_id }) as const
const reserve = (owner: string, replaces?: string) =>
  ({ type: 'Reserve', data: ofFein(owner), ...(replaces === undefined ? {} : { replaces }) }) as const
const release = (owner: string) => ({ type: 'Release', data: ofFein(owner) }) as const
const held = (owner: string) => ValueReserved.of(ofFein(owner))
const freed = (owner: string) => ReservationReleased.of(ofFein(owner))
decisions(reservation, [
  ['goes to who comes first', [], reserve(ONE), held(ONE)],
  ['is held already', [held(ONE)], reserve(ONE), []],
  ['is refused to another', [held(ONE)], reserve(TWO), 'fein_taken'],
  ['goes to another when it is free again', [held(ONE), freed(ONE)], reserve(TWO), held(TWO)],
  ['passes from an owner that lost its claim', [held(ONE)], reserve(TWO, ONE), held(TWO)],
  ['passes from nobody else', [held(THREE)], reserve(TWO, ONE), 'fein_taken'],
  ['is given back by its owner', [held(ONE)], release(ONE), freed(ONE)],
  ['is not given back by another', [held(ONE)], release(TWO), []],
  ['is given back once', [held(ONE), freed(ONE)], release(ONE), []],
])

const claim = IdempotencyKeyClaimed.of({ fingerprint: 'f', request_hash: 'body', command_id: ID })
const answer = IdempotencyKeyAnswered.of({
  fingerprint: 'f',
  status: 201,
  body: { id: ID },
  created_id: null,
})
const other = { ...claim.data, request_hash: 'other' }
const { fingerprint, command_id } = claim.data
const released = IdempotencyKeyReleased.of({ fingerprint, command_id })
decisions(idempotencyKey, [
  ['is claimed', [], { type: 'Claim', data: claim.data }, claim],
  ['is claimed once', [claim], { type: 'Claim', data: { ...claim.data, command_id: ONE } }, []],
  ['refuses another body', [claim], { type: 'Claim', data: other }, 'idempotency_key_reused'],
  ['keeps the answer', [claim], { type: 'Answer', data: answer.data }, answer],
  ['keeps the first answer', [claim, answer], { type: 'Answer', data: { ...answer.data, status: 500 } }, []],
  ['is released by its claim', [claim], { type: 'Release', data: released.data }, released],
  [
    'is not released by another',
    [claim],
    { type: 'Release', data: { ...released.data, command_id: ONE } },
    [],
  ],
  ['is not released when answered', [claim, answer], { type: 'Release', data: released.data }, []],
  [
    'is free when released',
    [claim, released],
    { type: 'Claim', data: other },
    IdempotencyKeyClaimed.of(other),
  ],
])

// ---- operations

const erased = (generation?: number) =>
  PersonalDataErased.of({ subject: 'person/1', ...(generation === undefined ? {} : { generation }) })
const erase = (generation: number) => ({ type: 'Erase', subject: 'person/1', generation }) as const
decisions(dataSubject, [
  ['is erased with its key', [], erase(1), erased(1)],
  ['is erased once', [erased(1)], erase(1), []],
  ['without a key number was erased with the first', [erased()], erase(1), []],
  ['that was reported again is erased again', [erased(1)], erase(2), erased(2)],
  ['is not erased with an earlier key', [erased(2)], erase(1), []],
])

const value = (digit: string) => KeyCheckValueRecorded.of({ key_check_value: digit.repeat(24) })
const check = (digit: string) => ({ type: 'RecordKeyCheckValue', keyCheckValue: digit.repeat(24) }) as const
decisions(installation, [
  ['records its keys', [], check('a'), value('a')],
  ['records them once', [value('a')], check('a'), []],
  ['refuses other keys', [value('a')], check('b'), 'other_keys'],
])

const acted = OperatorActed.of({ action: 'rebuild', target: 'employers', details: {} })
decisions(operatorAction, [
  ['is recorded', [], { type: 'Record', data: acted.data }, acted],
  ['is recorded each time', [acted], { type: 'Record', data: acted.data }, acted],
])

const noted = (note: string) => OperatorAlertAcknowledged.of({ alert_id: ID, note })
const acknowledge = (note: string) => ({ type: 'Acknowledge', data: noted(note).data }) as const
decisions(operatorAlert, [
  ['is acknowledged', [], acknowledge('called them'), noted('called them')],
  ['is acknowledged once', [noted('called them')], acknowledge('again'), []],
])

const raised = AlertRaised.of({
  kind: 'payment_link_held_up',
  about: { payment_link_id: ID, work: 'cancel' },
  since: '2026-03-02T08:00:00.000Z',
})
decisions(raisedAlert, [
  ['is raised', [], { type: 'Raise', data: raised.data }, raised],
  ['is raised once', [raised], { type: 'Raise', data: raised.data }, []],
])

const at = (to: number) => VirtualClockMoved.of({ to })
const moveTo = (to: number) => ({ type: 'MoveTo', to }) as const
decisions(virtualClock, [
  ['is set', [], moveTo(5), at(5)],
  ['moves forward', [at(5)], moveTo(6), at(6)],
  ['stays', [at(5)], moveTo(5), []],
  ['does not move back', [at(5)], moveTo(4), 'clock_moves_forward'],
])

const heldBack = (generation: number) =>
  ReadModelRebuildHeldBack.of({
    projection: 'accounts',
    generation,
    reason: 'rows_differ',
    tables: ['accounts'],
  })
const holdBack = (generation: number) => ({ type: 'HoldBack', data: heldBack(generation).data }) as const
decisions(readModelRebuild, [
  ['is held back', [], holdBack(2), heldBack(2)],
  ['is held back once', [heldBack(2)], holdBack(2), []],
  ['is held back again when it was made anew', [heldBack(2)], holdBack(3), heldBack(3)],
])

const skewed = (skew_ms: number) => ({ process_id: ID, skew_ms })
const compare = (skew_ms: number) => ({ type: 'Compare', data: skewed(skew_ms) }) as const
const differed = ProcessClockDiffered.of(skewed(-CLOCK_SKEW_LIMIT_MS - 1))
decisions(processClock, [
  ['agrees up to the limit', [], compare(CLOCK_SKEW_LIMIT_MS), []],
  ['differs beyond it', [], compare(-CLOCK_SKEW_LIMIT_MS - 1), differed],
  ['differs once', [differed], compare(CLOCK_SKEW_LIMIT_MS + 1), []],
  ['still differs near the limit', [differed], compare(CLOCK_SKEW_LIMIT_MS - 1), []],
  ['agrees again', [differed], compare(100), ProcessClockAgreed.of(skewed(100))],
])

test('there is no other aggregate', () => {
  const unit = join(import.meta.dirname, '..')
  const suites = readdirSync(unit, { encoding: 'utf8', recursive: true })
    .filter((name) => /\/(decisions.*|payroll-file)\.test\.ts$/.test(name))
    .map((name) => readFileSync(join(unit, name), 'utf8'))
  // each names its deciders as their streams are called
  const decided = suites.flatMap((text) => [...text.matchAll(/\b(?:decisions|specify)\((\w+)/g)])
  expect(new Set(decided.map(([, category]) => category))).toEqual(
    new Set(aggregates.map(({ category }) => category)),
  )
})
