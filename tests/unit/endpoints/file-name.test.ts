import { expect, test } from 'vitest'
import { fileName } from '../../../application/payroll/cut-file.ts'

const RECEIVED = Date.UTC(2026, 6, 15, 23, 59)

test('a file is named by employer, period and policy number', () => {
  const period = { start: '2026-07-01', end: '2026-07-15' }
  expect(fileName('Acme & Sons, Inc.', period, 'WC-1', RECEIVED)).toBe(
    'acme-sons-inc_2026-07-01_2026-07-15_WC-1.json',
  )
})

test('without a period both dates are the day of receipt', () => {
  expect(fileName('Acme', null, 'WC-1', RECEIVED)).toBe('acme_2026-07-15_2026-07-15_WC-1.json')
})

test('accents become plain letters, and nothing in it separates folders', () => {
  expect(fileName('Müller Söhne', null, 'WC/1\\2', RECEIVED)).toBe(
    'muller-sohne_2026-07-15_2026-07-15_WC-1-2.json',
  )
  expect(fileName('株式会社', null, 'WC-1', RECEIVED)).toMatch(/^employer_/)
})
