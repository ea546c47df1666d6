import { createDecipheriv, randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { inTimeSlices, mapInTimeSlices } from '../../../application/commands/time-slices.ts'
import { decrypt, encrypt, newKey, OVERHEAD_BYTES } from '../../../infrastructure/crypto/aes-gcm.ts'
import { Fingerprints } from '../../../infrastructure/crypto/fingerprints.ts'
import { MasterKeyError, MasterKeys } from '../../../infrastructure/crypto/master-keys.ts'
import { runs } from '../../support/generated.ts'

describe('AES-256-GCM', () => {
  test('gives back every plaintext under its key and binding', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 5000 }), fc.string(), (bytes, aad) => {
        const key = newKey()
        const sealed = encrypt(key, aad, Buffer.from(bytes))
        expect(sealed.length).toBe(bytes.length + OVERHEAD_BYTES)
        expect(decrypt(key, aad, sealed).equals(bytes)).toBe(true)
      }),
      runs(),
    )
  })

  test('any changed byte, another key or another binding is refused', () => {
    const key = newKey()
    const sealed = encrypt(key, 'here', Buffer.from('Ada Baker'))
    for (let place = 0; place < sealed.length; place += 1) {
      const changed = Buffer.from(sealed)
      changed[place]! ^= 1
      expect(() => decrypt(key, 'here', changed)).toThrow()
    }
    expect(() => decrypt(newKey(), 'here', sealed)).toThrow()
    expect(() => decrypt(key, 'there', sealed)).toThrow()
    expect(() => decrypt(key, 'here', sealed.subarray(0, 20))).toThrow('too short')
  })

  test('is what any other implementation reads: iv, tag, ciphertext', () => {
    const key = newKey()
    const sealed = encrypt(key, 'here', Buffer.from('Ada Baker'), 2)
    expect(sealed.length).toBe(2 + OVERHEAD_BYTES + 9)
    const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(2, 14))
    decipher.setAAD(Buffer.from('here'))
    decipher.setAuthTag(sealed.subarray(14, 30))
    expect(decipher.update(sealed.subarray(30), undefined, 'utf8') + decipher.final('utf8')).toBe('Ada Baker')
  })

  test('keys and initialization vectors do not repeat, across refills of the random pool too', () => {
    const key = newKey()
    const seen = new Set<string>()
    for (let count = 0; count < 2000; count += 1) {
      seen.add(newKey().toString('hex'))
      seen.add(encrypt(key, '', Buffer.alloc(0)).subarray(0, 12).toString('hex'))
    }
    expect(seen.size).toBe(4000)
  })
})

describe('master keys', () => {
  const [old, current] = [randomBytes(32), randomBytes(32)]

  test('the first wraps, all unwrap', () => {
    const dataKey = newKey()
    const before = new MasterKeys([old]).wrap(dataKey, 'purpose')
    const after = new MasterKeys([current, old])
    expect(after.unwrap(before, 'purpose').equals(dataKey)).toBe(true)
    const rewrapped = after.wrap(dataKey, 'purpose')
    expect(rewrapped.masterKeyId).toBe(after.currentId)
    expect(rewrapped.masterKeyId).not.toBe(before.masterKeyId)
    expect(new MasterKeys([current]).unwrap(rewrapped, 'purpose').equals(dataKey)).toBe(true)
  })

  test('a missing key is named by its id, and by nothing that helps to guess it', () => {
    const wrapped = new MasterKeys([old]).wrap(newKey(), 'data key 1 of person/1')
    expect(() => new MasterKeys([current]).unwrap(wrapped, 'data key 1 of person/1')).toThrow(
      `MASTER_KEY does not contain the key ${wrapped.masterKeyId} that data key 1 of person/1 is wrapped with`,
    )
    expect(wrapped.masterKeyId).toMatch(/^[0-9a-f]{16}$/)
    expect(old.toString('hex')).not.toContain(wrapped.masterKeyId)
  })

  test('a wrapped key does not unwrap for another purpose', () => {
    const keys = new MasterKeys([current])
    expect(() => keys.unwrap(keys.wrap(newKey(), 'data key 1 of a'), 'data key 1 of b')).toThrow(
      MasterKeyError,
    )
  })

  test('there is at least one, and each has 32 bytes', () => {
    expect(() => new MasterKeys([])).toThrow(MasterKeyError)
    expect(() => new MasterKeys([randomBytes(16)])).toThrow('32 bytes')
  })
})

test('fingerprints stay what they are for ever', () => {
  const fingerprints = new Fingerprints(Buffer.alloc(32, 7))
  // stored in logs: a change here would lose every reservation and every data subject
  expect(fingerprints.subjectId('person', 'ada|baker')).toBe('person/ff85aa1b9454f95f0de3887d')
  expect(fingerprints.fingerprint('fein', '12-3456789')).toBe('5aa52747a1491ab8cdca4e7e')
})

describe('long work in time slices', () => {
  test('handles everything in order', async () => {
    const items = Array.from({ length: 1000 }, (_, index) => index)
    const seen: number[] = []
    await inTimeSlices(items, (item) => seen.push(item))
    expect(seen).toEqual(items)
    expect(await mapInTimeSlices(items, (item, index) => item + index)).toEqual(items.map((item) => item * 2))
  })

  test('lets others have their turn', async () => {
    let turns = 0
    let done = false
    const count = () => {
      turns += 1
      if (!done) setImmediate(count)
    }
    setImmediate(count)
    await inTimeSlices(Array.from({ length: 64 }), () => {
      const end = performance.now() + 1
      while (performance.now() < end);
    })
    done = true
    expect(turns).toBeGreaterThan(2)
  })
})
