import { describe, expect, test } from 'vitest'
import {
  readNote,
  signedBy,
  signedNote,
  signerOf,
  verifierKey,
  verifierOf,
} from '../../../application/audit/checkpoint-note.ts'

const signer = signerOf('compstream/log', Buffer.alloc(32, 7))
const stranger = signerOf('compstream/log', Buffer.alloc(32, 8))
const verifier = (one: typeof signer) => verifierOf(verifierKey(one))!
const checkpoint = { origin: 'compstream/log', size: 1_234, root: Buffer.alloc(32, 1) }

describe('a signed checkpoint', () => {
  test('says whose log it is, its size and its root, and is signed by its key alone', () => {
    const note = signedNote(checkpoint, signer)
    expect(note.split('\n').slice(0, 4)).toEqual([
      'compstream/log',
      '1234',
      checkpoint.root.toString('base64'),
      '',
    ])
    expect(readNote(note)).toEqual(checkpoint)
    expect(signedBy(note, [verifier(stranger), verifier(signer)])).toBe('compstream/log')
    expect(signedBy(note, [verifier(stranger)])).toBeNull()
  })

  test('is not signed any more once a byte of it is changed', () => {
    const note = signedNote(checkpoint, signer)
    const keys = [verifier(signer)]
    const changed = [note.replace('1234', '1235'), note.replace('AQEB', 'AQEC'), note.trimEnd(), `${note}\n`]
    expect(changed.map((one) => signedBy(one, keys))).toEqual([null, null, null, null])
  })

  test('may have signatures of others as well', () => {
    const note = `${signedNote(checkpoint, signer)}— witness.example/w ${Buffer.alloc(68, 3).toString('base64')}\n`
    expect(signedBy(note, [verifier(signer)])).toBe('compstream/log')
  })

  test.each(['compstream/log+00000000+AQ==', 'no key', ''])(
    'is not checked with %j, which is no verifier key',
    (key) => {
      expect(verifierOf(key)).toBeNull()
    },
  )
})
