import type { JsonSchema } from './schemas.ts'

const ID = '66838f2a5b1c4d7e9f012345'

/** Values that examples show, by the name of the field. */
const VALUES: Readonly<Record<string, unknown>> = {
  account_holder_name: 'Acme Roofing LLC',
  account_number: '000123456789',
  amount_cents: 125_000,
  amounts_cents: [12, 34],
  card_last4: '4242',
  check_date: '2026-07-03',
  city: 'Austin',
  class_code: '5551',
  class_codes: ['5551'],
  contact_email: 'office@acme-roofing.example',
  contact_name: 'Ann Lee',
  display_name: 'Acme Insurance',
  effective_date: '2026-07-01',
  email: 'ann.lee@acme-roofing.example',
  employee_id: 'E-1001',
  employer_fein: '12-3456789',
  employees: [
    {
      employee_id: 'E-1001',
      first_name: 'Ann',
      last_name: 'Lee',
      state: 'TX',
      class_code: '5551',
      gross_wages: 2400,
      check_date: '2026-07-03',
    },
  ],
  end_date: '2026-06-30',
  expiration_date: '2027-06-30',
  fee_cents: 0,
  fein: '12-3456789',
  first_name: 'Ann',
  gross_wages: 2400,
  idempotency_key: 'policy-2026-0001',
  last_name: 'Lee',
  legal_name: 'Acme Roofing LLC',
  name: 'Acme Roofing LLC',
  pay_period_end: '2026-06-30',
  pay_period_start: '2026-06-16',
  period_end: '2026-06-30',
  period_start: '2026-06-16',
  phone: '+15125550100',
  policy_number: 'WC-2026-0001',
  premium_cents: 125_000,
  routing_number: '021000021',
  return_code: 'R01',
  start_date: '2026-06-16',
  state: 'TX',
  states: ['TX'],
  street: '100 Main Street',
  url: 'https://partner.example.com/hooks',
  zip: '78701',
  zip_code: '78701',
}

/**
 * A body that fits a schema: what it requires, and nothing else.
 * @param components schemas that others refer to, by name.
 */
export function exampleOf(
  schema: JsonSchema,
  components: Readonly<Record<string, JsonSchema>>,
  name = '',
): unknown {
  const { $ref, anyOf, properties, required, items, minItems = 1, ...own } = schema as Keywords
  if ($ref) return exampleOf(components[$ref.split('/').at(-1)!]!, components, name)
  if (name in VALUES) return VALUES[name]
  if (anyOf) return exampleOf(anyOf[0]!, components, name)
  if ('const' in own) return own.const
  if (own.default !== undefined) return own.default
  if (own.enum) return own.enum[0]
  switch ([own.type].flat()[0]) {
    case 'object':
      return Object.fromEntries(
        (required ?? []).map((field) => [field, exampleOf(properties![field]!, components, field)]),
      )
    case 'array':
      return Array.from({ length: minItems }, () => exampleOf(items ?? {}, components))
    case 'integer':
    case 'number':
      return own.minimum ?? 1
    case 'boolean':
      return true
    default:
      return textOf(own, name)
  }
}

type Keywords = JsonSchema & {
  readonly $ref?: string
  readonly anyOf?: readonly JsonSchema[]
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly items?: JsonSchema
  readonly minItems?: number
  readonly enum?: readonly unknown[]
  readonly type?: string | readonly string[]
  readonly minimum?: number
}

function textOf({ format, pattern }: JsonSchema, name: string): string {
  if (format === 'date') return '2026-07-01'
  if (format === 'date-time') return '2026-07-01T09:30:00.000Z'
  if (pattern === '^[0-9a-f]{24}$' || /^[a-z]+(_[a-z]+)*_id$|^[a-z]+Id$/.test(name)) return ID
  return name.replaceAll('_', ' ')
}
