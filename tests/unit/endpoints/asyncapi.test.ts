import { createRequire } from 'node:module'
import { Ajv } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { describe, expect, test } from 'vitest'
import { INTEGRATION_EVENTS } from '../../../application/followers/integration-messages.ts'
import { WEBHOOK_EVENT_TYPES, WEBHOOK_EVENTS } from '../../../domain/webhooks/event-types.ts'
import { samplePayload } from '../../../domain/webhooks/samples.ts'
import { asyncApi } from '../../../interfaces/endpoints/asyncapi.ts'

const document = asyncApi('1.2.3')

const specification = createRequire(import.meta.url)('@asyncapi/specs/schemas/3.1.0.json') as object
const isAsyncApi = formats
  .default(new Ajv({ strict: false, allErrors: true, meta: false, validateSchema: false }))
  .compile(specification)

describe('the description of events', () => {
  test('is an AsyncAPI 3.1 document', () => {
    isAsyncApi(JSON.parse(JSON.stringify(document)))
    expect(isAsyncApi.errors ?? []).toEqual([])
    expect(isAsyncApi({ ...document, channels: { webhooks: { adress: null } } })).toBe(false)
  })

  test('refers to nothing that it does not have', () => {
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)].map(
      ([, path]) => path!,
    )
    expect(references.length).toBeGreaterThan(20)
    for (const path of references) {
      const found = path
        .split('/')
        .reduce<unknown>((at, step) => (at as Record<string, unknown>)?.[step], document)
      expect(found, path).toBeTypeOf('object')
    }
  })

  test('has every type that is sent, and no other', () => {
    const messagesOf = (channel: string) => Object.keys(document.channels[channel]!.messages as object)
    expect(messagesOf('webhooks')).toEqual([
      ...['payment.completed', 'payment.failed', 'payment.refunded', 'subscription.created'],
      ...['subscription.cancelled', 'installment.paid', 'installment.failed', 'payment.debit_minted'],
      ...['payment.debit_cancelled', 'payment.debit_cleared', 'payment.debit_settled'],
    ])
    expect(messagesOf('integrationEvents')).toEqual(Object.keys(INTEGRATION_EVENTS))
  })
})

const ajv = formats.default(new Ajv2020({ strict: false, allErrors: true }))

describe.each(WEBHOOK_EVENT_TYPES)('the sample of %s', (type) => {
  const sample = JSON.parse(JSON.stringify(samplePayload(type, Date.UTC(2028, 1, 29, 23, 59)))) as object

  test('is what the type demands, and nothing else', () => {
    expect(WEBHOOK_EVENTS[type].strict().parse(sample)).toEqual(sample)
    expect(JSON.stringify(sample)).not.toContain('null')
  })

  test('is as described', () => {
    const validate = ajv.compile(document.components.messages[type]!.payload)
    validate(sample)
    expect(validate.errors ?? []).toEqual([])
    expect(validate({})).toBe(false)
  })

  test('has empty metadata where it has any', () => {
    if ('metadata' in WEBHOOK_EVENTS[type].shape) expect(sample).toMatchObject({ metadata: {} })
  })
})
