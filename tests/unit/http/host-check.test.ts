import type { IncomingMessage } from 'node:http'
import { describe, expect, it } from 'vitest'
import { OriginCheck } from '../../../interfaces/http/host-check.ts'

function passes(check: OriginCheck, host: string | undefined, origin?: string): boolean {
  const headers = { ...(host === undefined ? {} : { host }), ...(origin === undefined ? {} : { origin }) }
  return check.refusal({ headers } as IncomingMessage) === null
}

describe('on a loopback address', () => {
  const check = new OriginCheck('127.0.0.1', 'https://tools.example.com', ['https://app.example.com'])

  it.each(['127.0.0.1:4001', 'localhost:4001', 'LOCALHOST', '[::1]:4001', '127.8.9.1', 'tools.example.com'])(
    'takes the host %s',
    (host) => {
      expect(passes(check, host)).toBe(true)
    },
  )

  it.each([
    undefined,
    '',
    'evil.example',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    '10.0.0.1',
    'a b',
  ])('refuses the host %s', (host) => {
    expect(passes(check, host)).toBe(false)
  })

  it.each([
    'http://localhost:6274',
    'http://127.0.0.1',
    'https://tools.example.com',
    'https://app.example.com',
  ])('takes the origin %s', (origin) => {
    expect(passes(check, 'localhost:4001', origin)).toBe(true)
  })

  it.each([
    'null',
    '',
    'file://',
    'https://evil.example',
    'http://localhost.evil.example',
    'app.example.com',
  ])('refuses the origin %j', (origin) => {
    expect(passes(check, 'localhost:4001', origin)).toBe(false)
  })
})

describe('on any other address', () => {
  const check = new OriginCheck('0.0.0.0', null, [])

  it('takes any host, and of origins only the host that was asked', () => {
    expect(passes(check, 'tools.example.com')).toBe(true)
    expect(passes(check, undefined)).toBe(true)
    expect(passes(check, 'tools.example.com:4001', 'https://tools.example.com')).toBe(true)
    expect(passes(check, 'tools.example.com', 'https://evil.example')).toBe(false)
    expect(passes(check, 'tools.example.com', 'http://localhost:3000')).toBe(false)
    expect(passes(check, undefined, 'https://evil.example')).toBe(false)
    expect(passes(check, 'tools.example.com', 'null')).toBe(false)
  })
})
