import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import {
  AgeRefused,
  isAgeRecipient,
  newAgeKeys,
  openWithIdentity,
  sealForRecipient,
} from '../../../infrastructure/crypto/age.ts'
import { SealBroken } from '../../../infrastructure/crypto/sealed-stream.ts'

/** Of this test alone. */
const IDENTITY = 'AGE-SECRET-KEY-1XZ3JPMW0HCRM264VN6PY270YUD4JL7RHGN80HZE3JGUQG45KAEPQCFE4PT'
const RECIPIENT = 'age15y64ckfnjdt9jwzmcf3ljpxn6ykyt5y6xx87y59ewr3tg7x6a4zqxwewrg'
/** Written by `age` 1.1.1 for that recipient. */
const BY_AGE =
  'YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IFgyNTUxOSBjYjd0b1ZGSkFGMWZVeWE0aTBqWXNNWGpicXpPNUF2K1I2TElUblZzSDJFCnNMUFByNW9aWkJLQUl0TGROcnlhNzYzcklHU3JJamZqYWhZRDlLZGpwTTgKLS0tIGVsMk8zdVZ4M1h4bWNzR3hUSE9qN1dMRXVuTmIvcktKZC9TblNkSFJ0Y0kKedqAWeM8w3KOykQ6ir+F/LNHe9TPdtByoUcPi8wVAqb23pjjFm52D7sh5gZOEfEVh6SfEF/e'

async function* inPieces(bytes: Buffer, size = 1_000): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

async function all(pieces: AsyncIterable<Buffer>): Promise<Buffer> {
  const parts: Buffer[] = []
  for await (const piece of pieces) parts.push(piece)
  return Buffer.concat(parts)
}

const sealed = (plain: Buffer, recipient = RECIPIENT) => all(sealForRecipient(recipient, inPieces(plain)))
const opened = (bytes: Buffer, identity = IDENTITY) => all(openWithIdentity(identity, inPieces(bytes)))

describe('a file for one recipient', () => {
  test('that age wrote is opened', async () => {
    expect((await opened(Buffer.from(BY_AGE, 'base64'))).toString()).toBe('Sealed by age itself.\n')
  })

  test.each([0, 1, 64 * 1024, 200_000])('of %i bytes is opened by its key', async (size) => {
    const plain = randomBytes(size)
    const { recipient, identity } = newAgeKeys()
    expect(isAgeRecipient(recipient)).toBe(true)
    expect((await opened(await sealed(plain, recipient), identity)).equals(plain)).toBe(true)
  })

  test('is opened by no other key, and by what is no key', async () => {
    const bytes = await sealed(Buffer.from('text'))
    await expect(opened(bytes, newAgeKeys().identity)).rejects.toThrow(AgeRefused)
    await expect(opened(bytes, RECIPIENT)).rejects.toThrow(AgeRefused)
    const own = await sealed(Buffer.from('text'))
    for (const identity of [IDENTITY.toLowerCase(), IDENTITY.replace(/.$/, (last) => last.toLowerCase())]) {
      await expect(opened(own, identity)).rejects.toThrow(AgeRefused)
    }
  })

  test('is refused where it was changed or cut, and where it is something else', async () => {
    const bytes = await sealed(randomBytes(100_000))
    const changed = (at: number) => Buffer.from(bytes).fill(bytes[at]! ^ 1, at, at + 1)
    // behind the header: nonce, first chunk, last chunk
    for (const at of [bytes.indexOf('\n--- ') + 60, 1_000, bytes.length - 1]) {
      await expect(opened(changed(at))).rejects.toThrow(SealBroken)
    }
    await expect(opened(bytes.subarray(0, -1))).rejects.toThrow(SealBroken)
    await expect(opened(bytes.subarray(0, 70_000))).rejects.toThrow(SealBroken)
    await expect(opened(Buffer.from('{"kind":"about"}'))).rejects.toThrow(AgeRefused)
  })
})

test('what is no recipient is known', () => {
  for (const text of ['', 'age1', `${RECIPIENT.slice(0, -1)}q`, IDENTITY, RECIPIENT.toUpperCase()]) {
    expect([text, isAgeRecipient(text)]).toEqual([text, false])
  }
})
