import { expect, test } from 'vitest'
import { isoTime } from '../../../../domain/kernel/calendar.ts'
import {
  type CheckoutSettings,
  CheckoutSettingsChanged,
  checkoutSettings,
  DEFAULT_CHECKOUT,
  LogoCopied,
  LogoMissed,
  type Proof,
  WebAddressUnverified,
  WebAddressVerified,
} from '../../../../domain/payments/pages/checkout-settings.ts'
import { type Logo, LogoKept, logo, logoTypeOf } from '../../../../domain/payments/pages/logo.ts'
import {
  LINK_FORMAT,
  pageAddress,
  pagePattern,
  staysAsItIs,
  tokenIn,
} from '../../../../domain/payments/pages/web-address.ts'
import { decisions } from '../../../support/decider-spec.ts'

// each row reads given, when, then
const ID = 'a'.repeat(24)
const EARLY = Date.UTC(2026, 0, 2)

const settings: CheckoutSettings = { ...DEFAULT_CHECKOUT, enabled: true }
const changed = (config_version: number, to: CheckoutSettings) =>
  CheckoutSettingsChanged.of({ tenant_id: ID, config_version, settings: to })
const set = (to: CheckoutSettings) => ({ type: 'Set', tenantId: ID, settings: to }) as const

const [ADDRESS, LOGO] = ['pay.partner.example', 'https://partner.example/logo.png']
const withAddress = changed(1, { ...settings, web_address: ADDRESS })
const look = (provenBy: Proof | null, webAddress = ADDRESS, before: Proof | null = null) =>
  ({ type: 'RecordLook', tenantId: ID, webAddress, before, provenBy, at: EARLY }) as const
const address = { tenant_id: ID, web_address: ADDRESS, at: isoTime(EARLY) }
const verifiedBy = (by: Proof) => WebAddressVerified.of({ ...address, by })
const unverified = WebAddressUnverified.of(address)

const withLogo = changed(1, { ...settings, logo_url: LOGO })
const copied = { logoId: 'a'.repeat(64), mediaType: 'image/png' } as const
const recordLogo = (came: typeof copied | { readonly why: string }, logoUrl = LOGO) =>
  ({ type: 'RecordLogo', tenantId: ID, logoUrl, copied: came, at: EARLY }) as const
const ofLogo = { tenant_id: ID, logo_url: LOGO, at: isoTime(EARLY) }
const logoCopied = LogoCopied.of({ ...ofLogo, logo_id: copied.logoId, media_type: copied.mediaType })
const logoMissed = LogoMissed.of({ ...ofLogo, why: 'The address answered 404' })
decisions(checkoutSettings, [
  ['are set', [], set(settings), changed(1, settings)],
  ['are set to the defaults, too', [], set(DEFAULT_CHECKOUT), changed(1, DEFAULT_CHECKOUT)],
  ['are changed', [changed(1, settings)], set(DEFAULT_CHECKOUT), changed(2, DEFAULT_CHECKOUT)],
  ['stay as they are', [changed(1, settings)], set(settings), []],
  ['know an address that was proven', [withAddress], look('dns'), verifiedBy('dns')],
  ['know it once', [withAddress, verifiedBy('dns')], look('file'), []],
  [
    'take the word of the operator',
    [withAddress, verifiedBy('file')],
    look('operator'),
    verifiedBy('operator'),
  ],
  ['take it once', [withAddress, verifiedBy('operator')], look('operator'), []],
  ['know a proof better', [withAddress, verifiedBy('operator')], look('dns'), verifiedBy('dns')],
  ['lose what is no longer proven', [withAddress, verifiedBy('dns')], look(null, ADDRESS, 'dns'), unverified],
  ['lose it once', [withAddress, verifiedBy('dns'), unverified], look(null, ADDRESS, 'dns'), []],
  ['keep what came while somebody looked', [withAddress, verifiedBy('operator')], look(null), []],
  ['keep what was proven while somebody looked', [withAddress, verifiedBy('dns')], look(null), []],
  ['lose nothing that was never proven', [withAddress], look(null), []],
  ['know nothing of another address', [withAddress], look('dns', 'other.example'), []],
  [
    'prove a changed address anew',
    [withAddress, verifiedBy('dns'), changed(2, { ...settings, web_address: 'other.example' })],
    look('dns', 'other.example'),
    WebAddressVerified.of({ ...address, web_address: 'other.example', by: 'dns' }),
  ],
  [
    'keep the proof of one that is only written in another way',
    [withAddress, verifiedBy('dns'), changed(2, { ...settings, web_address: `https://${ADDRESS}/` })],
    look('dns', `https://${ADDRESS}/`),
    [],
  ],
  ['know the copy of a logo', [withLogo], recordLogo(copied), logoCopied],
  ['know it once', [withLogo, logoCopied], recordLogo(copied), []],
  ['know why there is none', [withLogo], recordLogo({ why: 'The address answered 404' }), logoMissed],
  ['know that once', [withLogo, logoMissed], recordLogo({ why: 'The address answered 404' }), []],
  ['know one that came late', [withLogo, logoMissed], recordLogo(copied), logoCopied],
  ['know nothing of another logo', [withLogo], recordLogo(copied, 'https://other.example/'), []],
  [
    'forget the copy of one that was changed',
    [withLogo, logoCopied, changed(2, settings), changed(3, { ...settings, logo_url: LOGO })],
    recordLogo(copied),
    logoCopied,
  ],
])

const copy: Logo = { logo_id: copied.logoId, media_type: copied.mediaType, content: 'AAAA' }
decisions(logo, [
  ['is kept', [], { type: 'Keep', logo: copy }, LogoKept.of(copy)],
  ['is kept once', [LogoKept.of(copy)], { type: 'Keep', logo: copy }, []],
])

test.each<[string, string | null]>([
  ['89504e470d0a1a0a0000000d', 'image/png'],
  ['ffd8ffe000104a464946', 'image/jpeg'],
  ['474946383961', 'image/gif'],
  ['524946460000000057454250', 'image/webp'],
  ['3c73766720786d6c6e73', null],
  ['5249464600000000574156452d', null],
  ['89504e470a1a0a', null],
  ['', null],
])('a logo that begins with %s is %s', (bytes, type) => {
  expect(logoTypeOf(Buffer.from(bytes, 'hex'))).toBe(type)
})

test.each([
  ['pay.partner.example', '/pay/{token}', 'https://pay.partner.example/pay/T-1_', '/pay/T-1_'],
  [
    'https://partner.example:8443/x/',
    'p-{token}.html',
    'https://partner.example:8443/x/p-T-1_.html',
    '/x/p-T-1_.html',
  ],
  ['PARTNER.example', '/?t={token}&v=1', 'https://partner.example/?t=T-1_&v=1', '/?t=T-1_&v=1'],
])('a page at %s by %s is found at its address', (address, format, url, path) => {
  expect(pageAddress(address, format, 'T-1_')).toBe(url)
  const pattern = pagePattern(address, format)
  expect(tokenIn(pattern, path)).toBe('T-1_')
  expect(tokenIn(pattern, `${path}/more`)).toBe(null)
  expect(tokenIn(pattern, '/')).toBe(null)
})

test('a page is found with a query behind its address', () => {
  expect(tokenIn('/pay/{token}', '/pay/T?from=mail')).toBe('T')
  expect(tokenIn('/?t={token}', '/?t=T-1_&utm_source=mail')).toBe('T-1_')
  expect(tokenIn('/?t={token}&v=1', '/?t=T&v=1&utm=x&y=')).toBe('T')
  for (const other of ['/?t=T&v=12', '/?t=T', '/?t=&v=1', '/?t=T?v=1', '/?t=T/&v=1', '/?v=1&t=T']) {
    expect(tokenIn('/?t={token}&v=1', other)).toBe(null)
  }
  expect(tokenIn('/{token}', '/')).toBe(null)
  expect(tokenIn('/a{token}a', '/a')).toBe(null)
})

test('a page is found where more word characters follow its token', () => {
  expect(tokenIn('/{token}x', '/T-1_x')).toBe('T-1_')
  expect(tokenIn('/{token}x', '/xx')).toBe('x')
  expect(tokenIn('/{token}-a.b', '/T-a.b?from=mail')).toBe('T')
  for (const other of ['/x', '/T', '/Ty', '/Tx/x', '/Tx&x=1']) expect(tokenIn('/{token}x', other)).toBe(null)
  expect(tokenIn('/{token}-a.b', '/T-a+b')).toBe(null)
})

const isLinkFormat = (format: string) => LINK_FORMAT.test(format) && staysAsItIs(format)

test.each([
  '/pay/{token}',
  '{token}',
  '//{token}',
  '/p-{token}.html',
  '/{token}x/',
  '/a.b/..c/...{token}',
  '/pay/{token}/open?x=1&y=%C3%BC',
  '/?t={token}&v=1',
  '/p(1),2;v=3!$&()*+=:@~_-/{token}',
])('links of the format %s arrive as they were issued', (format) => {
  expect(isLinkFormat(format)).toBe(true)
  const address = pageAddress('pay.partner.example/x', format, 'T-1_')
  const { href, pathname, search } = new URL(address)
  expect(href).toBe(address)
  expect(tokenIn(pagePattern('pay.partner.example/x', format), `${pathname}${search}`)).toBe('T-1_')
})

test.each([
  ...['', '/pay', '/{token', '/{Token}', '/{token}/{token}', '/p{{token}}', '/{token}?{token}'],
  ...['/p#{token}', '/{token}#f', '/{token}#', '/{token}?'],
  ...['/a/../{token}', '/./{token}', '/{token}/..', '/{token}/.', '/%2e%2E/{token}', '/a/.%2e/{token}'],
  ...['/bezahlen-für/{token}', '/p?t={token}&x=ü', '/\u202e{token}', '/\u200b{token}', '/\u{1f600}/{token}'],
  ...['/a\\{token}', '/p`{token}`', '/p^{token}', '/p|{token}', '/[{token}]', "/p'{token}", '/p"{token}"'],
  ...['/ {token}', '/{token}\n', '/\t{token}', '/%{token}', '/%2/{token}', '/100%/{token}', '/%zz{token}'],
])('links of the format %j lead nowhere', (format) => {
  expect(isLinkFormat(format)).toBe(false)
})
