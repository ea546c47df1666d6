import { describe, expect, test } from 'vitest'
import { HostUnknown } from '../../../infrastructure/webhooks/resolver.ts'
import { AllowedAddresses, formFault } from '../../../infrastructure/webhooks/target-addresses.ts'
import { TargetGuard } from '../../../infrastructure/webhooks/target-guard.ts'

const none = new AllowedAddresses([])

describe('addresses that webhooks may be sent to', () => {
  test.each(['8.8.8.8', '203.1.113.9', '2606:4700:4700::1111', '2a00:1450:4001:81b::200e', '::ffff:8.8.8.8'])(
    '%s is public',
    (address) => {
      expect(none.has(address)).toBe(true)
    },
  )

  test.each([
    ...['0.0.0.0', '0.1.2.3', '10.0.0.1', '100.64.0.1', '100.100.100.200', '127.0.0.1', '127.255.255.254'],
    ...['169.254.169.254', '172.16.0.1', '172.31.255.255', '192.0.0.192', '192.0.2.1', '192.88.99.1'],
    ...[
      '192.168.1.1',
      '198.18.0.1',
      '198.51.100.7',
      '203.0.113.7',
      '224.0.0.1',
      '240.0.0.1',
      '255.255.255.255',
    ],
    ...['168.63.129.16', '192.52.193.1', '192.31.196.1'],
    ...[
      '::',
      '::1',
      '::127.0.0.1',
      '::ffff:127.0.0.1',
      '::ffff:10.0.0.1',
      '::ffff:a9fe:a9fe',
      '::ffff:0:10.0.0.1',
    ],
    // NAT64, also with prefixes of their own
    ...['64:ff9b::7f00:1', '64:ff9b::8.8.8.8', '64:ff9b:1::10.0.0.1'],
    // 6to4, Teredo, ISATAP with both of its marks
    ...['2002:7f00:1::1', '2001:0:4136:e378:8000:63bf:3fff:fdd2'],
    ...['2606:4700::5efe:10.0.0.1', '2606:4700::200:5efe:127.0.0.1', 'fe80::5efe:10.0.0.1'],
    ...['fe80::1', 'fec0::1', 'fc00::1', 'fd00:ec2::254', 'ff02::1', '100::1', '2001:2::1', '2001:db8::1'],
    ...['3fff::1', '5f00::1', '4000::1', '2001:10::1', '2001:20::1'],
    ...['localhost', '8.8.8.8.8', '', 'fe80::1%eth0'],
  ])('%s is not', (address) => {
    expect(none.has(address)).toBe(false)
  })

  test('ranges are allowed in the family that they mean', () => {
    const allowed = new AllowedAddresses([
      { address: '10.1.0.0', prefix: 16, family: 'ipv4' },
      { address: 'fd00::', prefix: 8, family: 'ipv6' },
      { address: '::ffff:127.0.0.0', prefix: 104, family: 'ipv6' },
    ])
    for (const address of ['10.1.2.3', '::ffff:10.1.2.3', 'fd12::1', '127.0.0.1']) {
      expect(allowed.has(address), address).toBe(true)
    }
    for (const address of [
      '10.2.0.1',
      'fc00::1',
      '::1',
      '2002:a01:203::1',
      '64:ff9b::10.1.2.3',
      '169.254.0.1',
    ]) {
      expect(allowed.has(address), address).toBe(false)
    }
  })

  test.each([
    [
      '64:ff9b::/96',
      '64:ff9b::8.8.8.8',
      ['64:ff9b::10.0.0.1', '64:ff9b::127.0.0.1', '64:ff9b::169.254.169.254'],
    ],
    ['64:ff9b:1::/48', '64:ff9b:1::8.8.8.8', ['64:ff9b:1::10.0.0.1', '64:ff9b:1:ab:cd::127.0.0.1']],
    // behind a prefix of 48, 56 and 64 bits
    [
      '64:ff9b:1::/48',
      '64:ff9b:1:808:8:800::',
      [
        '64:ff9b:1:a00:0:100::',
        '64:ff9b:1:c00a:0:1::',
        '64:ff9b:1::7f:0:100:0',
        '64:ff9b:1:a00:0:500:808:808',
      ],
    ],
    ['2002::/16', '2002:808:808::1', ['2002:7f00:1::1', '2002:a9fe:a9fe:1::2']],
    ['2001::/32', '2001:0:808:808::f7f7:f7f7', ['2001:0:808:808::f5ff:fffe', '2001:0:a00:1::f7f7:f7f7']],
    ['::/96', '::8.8.8.8', ['::127.0.0.1', '::10.0.0.1']],
    ['::ffff:0:0:0/96', '::ffff:0:8.8.8.8', ['::ffff:0:10.0.0.1']],
    ['::ffff:0:0/96', '::ffff:8.8.8.8', ['::ffff:10.0.0.1', '10.0.0.1', '127.0.0.1']],
    ['fd00::/8', 'fd00::5efe:8.8.8.8', ['fd00::5efe:10.0.0.1', 'fd00::200:5efe:127.0.0.1']],
    ['::/0', '64:ff9b::8.8.8.8', ['64:ff9b::10.0.0.1', '2002:a00:1::1', '10.0.0.1']],
  ] as const)('a range of IPv6 such as %s allows no IPv4 address behind it', (range, good, bad) => {
    const [address, prefix] = range.split('/') as [string, string]
    const through = { address, prefix: Number(prefix), family: 'ipv6' } as const
    expect(new AllowedAddresses([through]).has(good), good).toBe(true)
    const both = new AllowedAddresses([through, { address: '0.0.0.0', prefix: 0, family: 'ipv4' }])
    for (const one of bad) {
      expect(new AllowedAddresses([through]).has(one), one).toBe(false)
      expect(both.has(one), `${one} is allowed by itself`).toBe(true)
    }
  })

  test('the address of this machine is no IPv4 address', () => {
    expect(new AllowedAddresses([{ address: '::1', prefix: 128, family: 'ipv6' }]).has('::1')).toBe(true)
  })
})

describe('forms of targets', () => {
  test.each([
    ['http://example.com/', 'must begin with https://'],
    ['ftp://example.com/', 'must begin with https://'],
    ['example.com', 'is no URL'],
    ['https://', 'is no URL'],
    ['https:///', 'is no URL'],
    ['https://./', 'names no host'],
    ['https://user@example.com/', 'must not hold a user name or a password'],
    ['https://:secret@example.com/', 'must not hold a user name or a password'],
    ['https://example.com:22/', 'names port 22, which is none for webhooks'],
    ['https://example.com:0/', 'names port 0, which is none for webhooks'],
    ['https://exa mple.com/', 'is no URL'],
    ['https://[fe80::1%25eth0]/', 'is no URL'],
    [`https://example.com/${'a'.repeat(2048)}`, 'has more than 2048 characters'],
  ])('%s', (url, fault) => {
    expect(formFault(url)).toBe(fault)
  })

  test.each([
    'https://example.com',
    'https://example.com:8443/a?b=c#d',
    'HTTPS://EXAMPLE.COM/',
    'https://[::1]:9/',
  ])('%s is one by its form, whatever its port and host', (url) => {
    expect(formFault(url)).toBe(url.endsWith(':9/') ? 'names port 9, which is none for webhooks' : null)
  })
})

describe('hosts', () => {
  const guard = (answers: Readonly<Record<string, readonly string[]>>, ranges = [] as never[]) =>
    new TargetGuard(ranges, {
      async addressesOf(host) {
        const found = answers[host] ?? (/^[\d.]+$|:/.test(host) ? [host] : undefined)
        if (!found) throw new HostUnknown('no name server knows it')
        return found
      },
    })
  const dialled = (url: string, answers = {}) => guard(answers).addressesOf(new URL(url).hostname)

  test.each([
    // the parser of URLs knows what all of these mean
    ...[
      'https://127.0.0.1/',
      'https://2130706433/',
      'https://0x7f000001/',
      'https://0177.0.0.1/',
      'https://127.1/',
    ],
    ...['https://0/', 'https://[::1]/', 'https://[::ffff:127.0.0.1]/', 'https://[64:ff9b::7f00:1]/'],
    ...['https://localhost/', 'https://LOCALHOST./', 'https://api.localhost/', 'https://①②⑦.⓪.⓪.①/'],
  ])('%s is refused', async (url) => {
    await expect(dialled(url)).rejects.toThrow('Its host has an address that is not public')
  })

  test('one address that is not public refuses all', async () => {
    const answers = { 'both.example': ['8.8.8.8', '10.0.0.1'], 'good.example': ['8.8.8.8', '2606:4700::1'] }
    await expect(dialled('https://both.example/', answers)).rejects.toThrow('not public')
    expect(await dialled('https://good.example./', answers)).toEqual(['8.8.8.8', '2606:4700::1'])
    await expect(dialled('https://unknown.example/', answers)).rejects.toThrow(
      'Its host was not found: no name server knows it',
    )
  })

  test('names of this machine are those of its addresses that are allowed', async () => {
    const allowed = guard({}, [{ address: '127.0.0.0', prefix: 8, family: 'ipv4' }] as never[])
    expect(await allowed.addressesOf('localhost')).toEqual(['127.0.0.1'])
  })
})
