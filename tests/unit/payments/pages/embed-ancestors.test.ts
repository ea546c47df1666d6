import type { Response } from 'express'
import { expect, test } from 'vitest'
import type { PaymentSession } from '../../../../domain/payments/sessions/payment-session-status.ts'
import { EmbedAncestors } from '../../../../interfaces/portal/embedded-pages.ts'

const ID = 'a'.repeat(24)
const answerAt = (url: string) => ({ locals: {}, req: { url } }) as unknown as Response

test('a failure is framed as the session that was shown before, a refusal only as one that was found', () => {
  const ancestors = new EmbedAncestors()
  const found = answerAt(`/embed/${ID}`)
  expect(ancestors.of(found, 503)).toEqual([])
  ancestors.found(found, { payment_session_id: ID } as PaymentSession, ['https://shop.example'])
  expect(ancestors.of(found, 404)).toEqual(['https://shop.example'])
  expect(ancestors.of(answerAt(`/embed/${ID}`), 503)).toEqual(['https://shop.example'])
  expect(ancestors.of(answerAt(`/embed/${ID}`), 404)).toEqual([])
  expect(ancestors.of(answerAt(`/pay/${ID}`), 503)).toEqual([])
})
