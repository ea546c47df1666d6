import { z } from 'zod'
import type { IdempotentOutcome } from '../../../application/commands/keyed-call.ts'
import type { Api } from '../../endpoints/api.ts'
import { Answer, endpointsOf } from '../../endpoints/endpoint.ts'
import { WITH_ENVELOPE } from '../../endpoints/envelope.ts'
import { machineReadable } from '../../endpoints/error-codes.ts'
import { type Fault, naming } from '../../endpoints/faults.ts'
import {
  type AuthenticatedClient,
  PARTNER_SCHEMES,
  type PartnerHost,
} from '../../endpoints/partner-access.ts'
import { LARGE_BODY } from '../../http/body.ts'
import { HttpError, refusalOf, writeCoreError } from '../../http/errors.ts'
import { client } from '../access/access.ts'

const ERROR_WORDS: Readonly<Record<string, string>> = {
  carrier_not_found: 'Carrier not found',
  employer_not_found: 'Employer not found',
  policy_not_found: 'Policy not found',
}

/** What partners call: payroll reports, employee changes, file status, inbound payroll webhook. */
const coreApi: Api = {
  name: 'core',
  title: 'Core API',
  description:
    'Report payroll, sync employees, read what became of a file, and look up employers, policies and carriers. Amounts that you send are numbers in dollars; ' +
    'amounts that you read are integer cents. `/api/v1` and `/api/v2` are the same; new integrations use the first.',
  prefixes: ['/api/v1', '/api/v2'],
  securitySchemes: {
    ...PARTNER_SCHEMES,
    webhookTimestamp: {
      type: 'apiKey',
      in: 'header',
      name: 'X-Webhook-Timestamp',
      description: 'Unix time in milliseconds, of inbound webhooks',
    },
    webhookSignature: {
      type: 'apiKey',
      in: 'header',
      name: 'X-Webhook-Signature',
      description:
        'Lower-case hex HMAC-SHA256 of timestamp, a full stop and the raw body, under the connection secret',
    },
  },
  bodyLimit: LARGE_BODY,
  takesEmptyBodies: false,
  // JSON that is no object lacks all its fields
  objectOf: (value) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Readonly<Record<string, unknown>>)
      : {},
  unreadable: (kind) => (kind === 'characters' || kind === 'numbers' ? `Invalid ${kind}` : 'Invalid JSON'),
  refuse,
  rejected: (rejection) => refusalOf(rejection, ERROR_WORDS),
  writeError: writeCoreError,
  errorBody: z.object({ error: z.string(), message: z.string(), ...machineReadable }),
  // lists stand in the envelope that lists have everywhere
  envelope: {
    wrap: (data, pagination) => (pagination ? WITH_ENVELOPE.envelope.wrap(data, pagination) : data),
    schema: (data, pagination) => (pagination ? WITH_ENVELOPE.envelope.schema(data, pagination) : data),
  },
}

export const endpoint = endpointsOf<PartnerHost, AuthenticatedClient>(coreApi, client)

/** What is said of a required field that has another type. */
const WRONG_TYPES = new Set(['must be a string', 'must be an array'])

/**
 * Fields that are missing or of the wrong type, with the first unknown one, which may be meant for them; then unknown ones, then lists of the
 * wrong length, then whatever comes first.
 */
function refuse(faults: readonly Fault[]): HttpError {
  const missing = faults.filter(
    ({ kind, field, message }) => !/[.[]/.test(field) && (kind === 'missing' || WRONG_TYPES.has(message)),
  )
  const unknown = faults.find(({ kind }) => kind === 'unknown')
  const told = unknown ? [`${unknown.field} ${unknown.message}`] : []
  if (missing.length > 0) {
    const verb = missing.length === 1 ? 'is' : 'are'
    const names = missing.map(({ field }) => field).join(', ')
    const lacks = `${names} ${verb} missing or of the wrong type`
    const message = [lacks, ...told].join('; ')
    return new HttpError(400, 'Missing required fields', message, naming(faults, missing[0]))
  }
  if (unknown) return new HttpError(400, 'Unknown field', told[0]!, naming(faults, unknown))
  const first = faults.find((one) => one.field === 'employees') ?? faults[0]!
  const { field, message, kind } = first
  const named = naming(faults, first)
  if (field === 'employees' && kind === 'too_small') {
    const why = 'Send at least one element in employees'
    return new HttpError(400, 'employees must be non-empty', why, named)
  }
  if (field === 'employees' && kind === 'too_big') {
    return new HttpError(413, null, `employees ${message}`, named)
  }
  return new HttpError(400, `Invalid ${field.split(/[.[]/)[0]}`, `${field} ${message}`, named)
}

/** An outcome of a call with a key as an answer; a replay says so. */
export function answered<Status extends number, Data>(
  status: Status,
  { body, replayed }: IdempotentOutcome,
): Answer<Status, Data> {
  return new Answer(status, body as Data, { replayed })
}
