import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { ERASED } from '../../application/ports/personal-data.ts'
import { masked, maskedState, opened } from '../../application/sealed-fields.ts'
import { sealFields } from '../../application/sealing.ts'
import { aggregates } from '../../domain/catalogue.ts'
import { eventType } from '../../domain/kernel/event-type.ts'
import {
  isSealed,
  type Sealed,
  sealed,
  secret,
  sensitiveFields,
  sensitiveValues,
} from '../../domain/kernel/sealed.ts'
import { sampleFitting } from '../support/schema-values.ts'

const types = aggregates.flatMap(({ events }) => events)
const MASK = '•••'
const ID = '0123456789abcdef01234567'

const nameOf = (steps: readonly (string | number | null)[]) => steps.map((step) => step ?? '*').join('.')

/** Fields of events that hold free text: `<type>.<field>`, `*` for each item of a list. */
function plainTexts(schema: z.core.$ZodType, path: string): string[] {
  const { def } = (schema as z.core.$ZodTypes)._zod
  switch (def.type) {
    case 'object':
      return Object.entries(def.shape).flatMap(([name, one]) => plainTexts(one, `${path}.${name}`))
    case 'array':
      return plainTexts(def.element, `${path}.*`)
    case 'record':
      return plainTexts(def.valueType, `${path}.*`)
    case 'tuple':
      return def.items.flatMap((one, index) => plainTexts(one, `${path}.${index}`))
    case 'union':
      return def.options.flatMap((one) => plainTexts(one, path))
    case 'optional':
    case 'nullable':
      return plainTexts(def.innerType, path)
    case 'unknown':
      return [path]
    case 'string':
      // an id, or whatever else has a form that leaves no room for a name
      return def.checks?.length || 'format' in def ? [] : [path]
    default:
      return []
  }
}

/** The keys that are declared, as {@link plainTexts} names them. */
const declared = new Set(
  types.flatMap((type) => sensitiveFields(type.schema).map(({ steps }) => `${type.name}.${nameOf(steps)}`)),
)

describe('the events', () => {
  test('declare these fields as sealed or secret', () => {
    expect([...declared].sort()).toEqual([
      'AchAccountCorrected.account.account_ref',
      'AchAccountCreated.account.account_ref',
      'AgentCredentialIssued.key_hash',
      'ApiClientIssued.secret_hash',
      'ApiClientSecretRotated.secret_hash',
      'BankConnectionHandleIssued.handle_hash',
      'BankConnectionHandleIssued.token_ref',
      'BankDebitCreated.account.account_ref',
      'BankTransactionsReceived.changed.*.description',
      'EmployeeChangesRecorded.changes.*.record',
      'EmployerDetailsChanged.address',
      'EmployerDetailsChanged.contact_email',
      'EmployerRegistered.address',
      'EmployerRegistered.contact_email',
      'EmployerRegistered.fein',
      'FinancingInvitationBegun.to',
      'FinancingInvitationBegun.to_fingerprint',
      'FinancingRequested.insured.address',
      'FinancingRequested.insured.business_name',
      'FinancingRequested.insured.city',
      'FinancingRequested.insured.state',
      'FinancingRequested.insured.zip_code',
      'FinancingRequested.request_fingerprint',
      'FinancingSessionCreated.access_token_hash',
      'FinancingSessionCreated.checkout_token_hash',
      'FinancingSessionCreated.customer.email',
      'FinancingSessionCreated.customer.name',
      'FinancingSessionCreated.customer.phone',
      'FinancingSessionCreated.request_fingerprint',
      'FinancingSettingsChanged.settings.recipients.*.address',
      'FinancingSettingsChanged.settings.recipients.*.fingerprint',
      'InboundConnectionOpened.secret_ref',
      'IntakeReceived.employer',
      'IntakeReceived.owners.*.person',
      'PayerAccountCorrected.account.account_ref',
      'PaymentLinkCreated.customer.email',
      'PaymentLinkCreated.customer.name',
      'PaymentLinkCreated.customer.phone',
      'PaymentSessionCreated.customer.email',
      'PaymentSessionCreated.customer.name',
      'PaymentSessionCreated.customer.phone',
      'PaymentSessionCreated.token_hash',
      'PaymentSessionDebitArranged.account.account_ref',
      'PaymentSessionInvited.to',
      'PayrollFileProcessed.validation.failures.*.person',
      'PayrollFileReceived.rows.*.person',
      'PayrollRowsRecorded.rows.*.person',
      'PayrollRowsValidated.failures.*.person',
      'WebhookSecretRotated.former_ref',
      'WebhookSecretRotated.secret_ref',
      'WebhookSubscriptionDeleted.former_ref',
      'WebhookSubscriptionRegistered.secret_ref',
    ])
  })

  test('hold no other text than what is neither personal nor secret', () => {
    const texts = types.flatMap(({ name, schema }) => plainTexts(schema, name))
    // a new field stands here only when it is nobody's: else declare it with `sealed` or `secret`
    expect(texts.filter((one) => !declared.has(one)).sort()).toEqual([
      'AchAccountChanged.bank_name',
      'AchAccountChanged.nickname',
      'AchAccountCorrected.change_code',
      'AchAccountCreated.bank_name',
      'AchAccountCreated.nickname',
      'AchAccountCreated.unverified_reason',
      'AchAccountDisabled.return_code',
      'AchAccountUnverified.reason',
      'AchAccountVerified.note',
      'AgentCredentialIssued.agent_name',
      'AgentCredentialIssued.api_key_prefix',
      'AgentCredentialIssued.created_by',
      'AgentCredentialIssued.entity_id',
      'ApiClientDeactivated.client_id',
      'ApiClientIssued.client_id',
      'ApiClientIssued.name',
      'ApiClientSecretRotated.client_id',
      'BankAccountChanged.bank_name',
      'BankAccountChanged.name',
      'BankAccountCreated.bank_name',
      'BankAccountCreated.client_id',
      'BankAccountCreated.name',
      'BankAccountCreated.user_id',
      'BankConnectionAccountsFound.accounts.*.bankconnect_account_id',
      'BankConnectionAccountsFound.institution_name',
      'BankConnectionLinked.client_id',
      'BankConnectionLinked.item_id',
      'BankConnectionLinked.user_id',
      'BankCreditReceived.bank_transaction_id',
      'BankCreditReceived.reference',
      'BankDebitCreated.description',
      'BankDebitCreated.metadata.*',
      'BankDebitFailed.note',
      'BankDebitGated.reason',
      'BankDebitMatched.bank_transaction_id',
      'BankDebitMatched.matcher_version',
      'BankDebitRejected.note',
      'BankDebitReleased.note',
      'BankDebitReported.processor_status',
      'BankDebitRepresented.note',
      'BankDebitReturned.return_code',
      'BankFileAnswered.reason',
      'BankFileExposureRepeated.note',
      'BankFileRecorded.batches.*.description',
      'BankFileRecorded.name',
      'BankFileRecorded.originator.company_id',
      'BankFileRecorded.originator.destination_routing',
      'BankFileRecorded.originator.origin_id',
      'BankFileTreatedAsSent.note',
      'BankNumbersDisabled.return_code',
      'BankReportDeliveredAgain.name',
      'BankReportItemResolved.note',
      'BankReportItemsParked.items.*.code',
      'BankReportItemsParked.items.*.original_trace',
      'BankReportItemsParked.items.*.reason',
      'BankReportReceived.name',
      'BankReportRefused.reason',
      'BankTransactionsReceived.changed.*.bankconnect_account_id',
      'BankTransactionsReceived.changed.*.bankconnect_transaction_id',
      'BankTransactionsReceived.changed.*.currency',
      'BankTransactionsReceived.client_id',
      'BankTransactionsReceived.cursor',
      'BankTransactionsReceived.item_id',
      'CarrierRegistered.name',
      'CheckoutSettingsChanged.settings.accent_color',
      'CheckoutSettingsChanged.settings.display_name',
      'CheckoutSettingsChanged.settings.embed_origins.*',
      'CheckoutSettingsChanged.settings.link_format',
      'CheckoutSettingsChanged.settings.logo_url',
      'CheckoutSettingsChanged.settings.sender_email',
      'CheckoutSettingsChanged.settings.sender_name',
      'CheckoutSettingsChanged.settings.sms_from',
      'CheckoutSettingsChanged.settings.support_email',
      'CheckoutSettingsChanged.settings.web_address',
      'DebitCollectionAccepted.entries.*.description',
      'DebitKeyClaimed.claim_id',
      'DebitKeyClaimed.content',
      'DebitKeyClaimed.key',
      'DebitKeyReleased.claim_id',
      'DebitKeyReleased.key',
      'EmployeeChangesRecorded.changes.*.effective_date',
      'EmployeeChangesRecorded.changes.*.subject',
      'EmployeeSyncReceived.sender_id',
      'EmployerDetailsChanged.legal_name',
      'EmployerRegistered.legal_name',
      'FinancingDownPaymentReported.notice_id',
      'FinancingDownPaymentReported.quote_key',
      'FinancingInvitationBegun.page_address',
      'FinancingSessionCreated.client_id',
      'FinancingSessionCreated.created_by',
      'FinancingSessionCreated.description',
      'FinancingSessionCreated.line_items.*.label',
      'FinancingSubmitted.provider_request_id',
      'IdempotencyKeyAnswered.body',
      'IdempotencyKeyAnswered.created_id',
      'IdempotencyKeyAnswered.fingerprint',
      'IdempotencyKeyClaimed.command_id',
      'IdempotencyKeyClaimed.fingerprint',
      'IdempotencyKeyClaimed.request_hash',
      'IdempotencyKeyReleased.command_id',
      'IdempotencyKeyReleased.fingerprint',
      'IntakeReceived.command_id',
      'IntakeReceived.policy.class_code',
      'IntakeReceived.policy.effective_date',
      'IntakeReceived.policy.el_limit_tier',
      'IntakeReceived.policy.expiration_date',
      'IntakeReceived.policy.policy_number',
      'IntakeReceived.policy.state',
      'IntakeRefused.reason',
      'LegacyCollectionReturned.return_code',
      'LegacyImportBegun.name',
      'LogoCopied.logo_url',
      'LogoMissed.logo_url',
      'LogoMissed.why',
      'MicroDepositsLeftOut.note',
      'OperatorActed.action',
      'OperatorActed.details.*',
      'OperatorActed.target',
      'OperatorAlertAcknowledged.note',
      'PayerAccountCorrected.change_code',
      'PaymentLinkAmountDiffered.processor_payment_id',
      'PaymentLinkCreated.after_completion_url',
      'PaymentLinkCreated.created_by',
      'PaymentLinkCreated.fee_breakdown.*.label',
      'PaymentLinkCreated.invoice_id',
      'PaymentLinkCreated.metadata.*',
      'PaymentLinkCreated.processor_payment_link_id',
      'PaymentLinkCreated.processor_url',
      'PaymentLinkPaid.payment_method_id',
      'PaymentLinkPaid.processor_payment_id',
      'PaymentLinkPaidAgain.processor_payment_id',
      'PaymentLinkPaymentFailed.failure_message',
      'PaymentLinkRefundFailed.processor_refund_id',
      'PaymentLinkRefunded.processor_refund_id',
      'PaymentSessionAmountDiffered.processor_payment_id',
      'PaymentSessionCheckoutBegun.processor_checkout_id',
      'PaymentSessionCreated.created_by',
      'PaymentSessionCreated.description',
      'PaymentSessionCreated.line_items.*.label',
      'PaymentSessionCreated.token_prefix',
      'PaymentSessionInvited.reason',
      'PaymentSessionPaid.processor_payment_id',
      'PaymentSessionPaidAgain.processor_payment_id',
      'PaymentSessionPaymentFailed.failure_message',
      'PaymentSessionPlanStopped.disabled_by',
      'PayrollCompanyRegistered.name',
      'PayrollFileFailed.error',
      'PayrollFileProcessed.period.end',
      'PayrollFileProcessed.period.start',
      'PayrollFileProcessed.policy_number',
      'PayrollFileProcessed.validation.failures.*.reasons.*.field',
      'PayrollFileProcessed.validation.failures.*.reasons.*.value',
      'PayrollFileProcessed.validation.valid.class_codes.*',
      'PayrollFileProcessed.validation.valid.states.*',
      'PayrollFileProcessed.wages.wages.*.2',
      'PayrollFileProcessed.wages.wages.*.3',
      'PayrollFileReceived.file_name',
      'PayrollFileReceived.period.end',
      'PayrollFileReceived.period.start',
      'PayrollFileReceived.policy_number',
      'PayrollFileReceived.rows.*.check_date',
      'PayrollFileReceived.rows.*.class_code',
      'PayrollFileReceived.rows.*.malformed.*.field',
      'PayrollFileReceived.rows.*.malformed.*.value',
      'PayrollFileReceived.rows.*.pay_period_end',
      'PayrollFileReceived.rows.*.pay_period_start',
      'PayrollFileReceived.rows.*.state',
      'PayrollFileReceived.rows.*.state_as_sent',
      'PayrollFileReceived.rows.*.unknown.*',
      'PayrollFileReceived.source.sender_id',
      'PayrollPremiumCalculated.completed.period.end',
      'PayrollPremiumCalculated.completed.period.start',
      'PayrollPremiumCalculated.completed.policy_number',
      'PayrollRowsRecorded.rows.*.check_date',
      'PayrollRowsRecorded.rows.*.class_code',
      'PayrollRowsRecorded.rows.*.malformed.*.field',
      'PayrollRowsRecorded.rows.*.malformed.*.value',
      'PayrollRowsRecorded.rows.*.pay_period_end',
      'PayrollRowsRecorded.rows.*.pay_period_start',
      'PayrollRowsRecorded.rows.*.state',
      'PayrollRowsRecorded.rows.*.state_as_sent',
      'PayrollRowsRecorded.rows.*.unknown.*',
      'PayrollRowsValidated.failures.*.reasons.*.field',
      'PayrollRowsValidated.failures.*.reasons.*.value',
      'PayrollRowsValidated.valid.class_codes.*',
      'PayrollRowsValidated.valid.states.*',
      'PayrollWagesCalculated.wages.*.2',
      'PayrollWagesCalculated.wages.*.3',
      'PersonalDataErased.subject',
      'PolicyCancelled.reason',
      'PolicyIssued.class_codes.*',
      'PolicyIssued.effective_date',
      'PolicyIssued.expiration_date',
      'PolicyIssued.fees.*.label',
      'PolicyIssued.locations.*.id',
      'PolicyIssued.locations.*.state',
      'PolicyIssued.payroll_frequency',
      'PolicyIssued.policy_number',
      'PolicyIssued.rates.*.class_code',
      'PolicyIssued.rates.*.rate_per_100',
      'PolicyIssued.rates.*.state',
      'PolicyIssued.states.*',
      'PolicyTermsChanged.class_codes.*',
      'PolicyTermsChanged.fees.*.label',
      'PolicyTermsChanged.locations.*.id',
      'PolicyTermsChanged.locations.*.state',
      'PolicyTermsChanged.payroll_frequency',
      'PolicyTermsChanged.rates.*.class_code',
      'PolicyTermsChanged.rates.*.rate_per_100',
      'PolicyTermsChanged.rates.*.state',
      'PolicyTermsChanged.states.*',
      'PrimaryAccountChosen.owner_id',
      'PrimaryAccountCleared.owner_id',
      'ProcessorCustomerCreated.customer_id',
      'ReconciliationMade.differences.*.expected',
      'ReconciliationMade.differences.*.found',
      'ReservationReleased.fingerprint',
      'ReservationReleased.owner_id',
      'SubscriptionChargeFailed.failure_code',
      'SubscriptionChargeFailed.processor_payment_id',
      'SubscriptionChargePaid.processor_payment_id',
      'SubscriptionChargePaidAgain.processor_payment_id',
      'SubscriptionPaymentDiffered.processor_payment_id',
      'SubscriptionStarted.customer_id',
      'SubscriptionStarted.metadata.*',
      'SubscriptionStarted.payment_method_id',
      'SubscriptionStarted.processor_subscription_id',
      'TenantRegistered.name',
      'ValueReserved.fingerprint',
      'ValueReserved.owner_id',
      'WebAddressUnverified.web_address',
      'WebAddressVerified.web_address',
      'WebhookEventRaised.payload.*',
      'WebhookSubscriptionChanged.url',
      'WebhookSubscriptionRegistered.client_id',
      'WebhookSubscriptionRegistered.url',
    ])
  })

  test.each(types.filter(({ schema }) => sensitiveFields(schema).some((field) => field.sealed)))(
    'of type $name are sealed, masked and opened as they declare',
    async (type) => {
      const data = sampleFitting(type.schema, type.name) as Record<string, unknown>
      for (const { holder, key } of sensitiveValues(type.schema, data)) holder[key] = `plain ${key}`
      const subjects = (kind: string) => `${kind}/${ID}`
      const whole = await sealFields(vault, type, structuredClone(data), ({ path }) =>
        subjects(
          sensitiveFields(type.schema).find((field) => field.steps.length === path.length)!.sealed!.subject,
        ),
      )
      expect(type.schema.safeParse(whole).success).toBe(true)
      const values = sensitiveValues(type.schema, whole).filter((field) => field.sealed)
      expect(values.length).toBeGreaterThan(0)
      for (const { value } of values) expect(isSealed(value)).toBe(true)
      const stored = { schema: type.schema, data: whole }
      expect(JSON.stringify(masked(stored))).not.toMatch(/sld1|plain/)
      const { data: shown, revealed } = await opened(vault, [stored])
      expect(revealed).toBe(values.length)
      expect(shown).toEqual([data])
    },
  )
})

describe('what values are bound to is what stored values were bound to', () => {
  const file_id = ID
  const one = `sld1.person/${ID}.AAAA`
  const employer = `sld1.employer/${ID}.AAAA`
  test.each([
    ['EmployerRegistered', { employer_id: ID, fein: employer }, [`employer-${ID}|EmployerRegistered|fein`]],
    [
      'EmployerDetailsChanged',
      { employer_id: ID, address: employer, contact_email: employer },
      [`employer-${ID}|EmployerRegistered|address`, `employer-${ID}|EmployerRegistered|contact_email`],
    ],
    [
      'PaymentLinkCreated',
      { payment_link_id: ID, customer: { name: employer, phone: employer } },
      [
        `paymentLink-${ID}|PaymentLinkCreated|customer.name`,
        `paymentLink-${ID}|PaymentLinkCreated|customer.phone`,
      ],
    ],
    [
      'PayrollRowsRecorded',
      { file_id, rows: [{ n: 501 }, { n: 502, person: one }] },
      [`payrollFile-${ID}|PayrollRowsRecorded|rows.502.person`],
    ],
    [
      'PayrollFileReceived',
      { file_id, rows: [{ n: 7, person: one }] },
      [`payrollFile-${ID}|PayrollRowsRecorded|rows.7.person`],
    ],
    [
      'PayrollRowsValidated',
      { file_id, failures: [{ row_number: 9, person: one }] },
      [`payrollFile-${ID}|PayrollRowsRecorded|rows.9.person`],
    ],
    [
      'PayrollFileProcessed',
      { file_id, validation: { failures: [{ row_number: 9, person: one }] } },
      [`payrollFile-${ID}|PayrollRowsRecorded|rows.9.person`],
    ],
    [
      'IntakeReceived',
      { intake_id: ID, employer, owners: [{}, { person: one }] },
      [`intake-${ID}|IntakeReceived|employer`, `intake-${ID}|IntakeReceived|owners.1.person`],
    ],
    [
      'EmployeeChangesRecorded',
      { file_id, chunk: 2, changes: [{}, { record: one }] },
      [`employeeSync-${ID}|EmployeeChangesRecorded|chunks.2.changes.1.record`],
    ],
  ])('%s', (name, data, contexts) => {
    const { schema } = types.find((type) => type.name === name)!
    expect(sensitiveValues(schema, data).map((place) => place.sealed!.boundTo(place))).toEqual(contexts)
  })
})

describe('declarations', () => {
  const Told = eventType({
    name: 'Told',
    schema: z.object({
      id: z.string(),
      who: z.record(
        z.string(),
        z.union([z.number(), sealed({ subject: 'person', boundTo: ({ path }) => path.join('/') })]),
      ),
      token: z.tuple([z.string(), secret().nullable()]),
    }),
  })
  const stored = `sld1.person/${ID}.AAAA` as Sealed
  const data = { id: stored, who: { a: 1, b: stored }, token: ['x', 'hash'] as [string, string] }

  test('are found in records, unions and tuples', () => {
    expect(sensitiveValues(Told.schema, data).map(({ path, value }) => [path.join('.'), value])).toEqual([
      ['who.b', stored],
      ['token.1', 'hash'],
    ])
    expect(masked({ schema: Told.schema, data })).toEqual({
      id: stored,
      who: { a: 1, b: MASK },
      token: ['x', MASK],
    })
    expect(data.who.b).toBe(stored)
  })

  test('refuse a key of another kind of subject', async () => {
    const draft = { who: { b: 'plain' } }
    await expect(sealFields(vault, Told, draft, () => `employer/${ID}`)).rejects.toThrow(
      'Told: who.b is sealed under the key of a person',
    )
  })

  test('cannot hide in a part that nobody looks into', () => {
    expect(() => sensitiveFields(z.object({ at: z.date() }))).toThrow('A schema of kind date in an event')
  })

  test('mask what of an event stands in a state, whatever it is called there', () => {
    const sensitive = new Set(sensitiveValues(Told.schema, data).map(({ value }) => value))
    const state = { told: [{ hashed: 'hash', n: 1 }], by: { other: stored }, none: null }
    expect(maskedState(state, sensitive)).toEqual({
      told: [{ hashed: MASK, n: 1 }],
      by: { other: MASK },
      none: null,
    })
  })
})

/** Seals by writing down what was asked for; opens only what is bound to the same place. */
const vault = {
  seal: async (items: readonly { subject: string; context: string; plaintext: string }[]) =>
    items.map(
      ({ subject, context, plaintext }) =>
        `sld1.${subject}.${Buffer.from(JSON.stringify([context, plaintext])).toString('base64url')}` as Sealed,
    ),
  open: async (items: readonly { value: Sealed; context: string }[]) =>
    items.map(({ value, context }) => {
      const [boundTo, text] = JSON.parse(Buffer.from(value.split('.')[2]!, 'base64url').toString())
      return boundTo === context ? String(text) : ERASED
    }),
}
