import { describe, expect, test } from 'vitest'
import {
  type CosignatureRefused,
  cosigned as cosignedAsOf,
  isSignedFurther,
  readNote,
  signaturesOn,
  signedBy,
  signedNote,
  signerOf,
  verifierKey,
  verifierOf,
} from '../../../application/audit/checkpoint-note.ts'
import { newWitness } from '../../support/witness.ts'

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

  test('is rejected whole where a line is no signature, or not that of the key it names', () => {
    const note = signedNote(checkpoint, signer)
    const [, line] = note.split('\n\n') as [string, string]
    const forged = `${note.slice(0, -line.length)}${line.replace(/ \S+$/m, (one) => `${one.slice(0, 8)}AAAA${one.slice(12)}`)}`
    const notes = [
      forged,
      `${forged}${line}`,
      `${note}no signature\n`,
      `${note}— w AAA=\n`,
      `${note}— a+b AAAAAAAA\n`,
    ]
    expect(notes.map((one) => signaturesOn(one, [verifier(signer)]))).toEqual(notes.map(() => null))
  })

  test.each(['compstream/log+00000000+AQ==', 'no key', ''])(
    'is not checked with %j, which is no verifier key',
    (key) => {
      expect(verifierOf(key)).toBeNull()
    },
  )
})

describe('a cosignature', () => {
  const note = signedNote(checkpoint, signer)
  const [one, other] = [newWitness('witness.example/1'), newWitness('witness.example/2')]
  const witnesses = [one, other].map(({ key }) => verifierOf(key)!)
  const idOf = ({ key }: typeof one) => key.split('+')[1]
  const seen = { witness: 'witness.example/1', key_id: idOf(one), signed_at: '2026-04-01T00:00:00.000Z' }
  const now = Date.parse(seen.signed_at)
  const at = now / 1_000
  const cosigned = (of: string, lines: string, by = witnesses) => cosignedAsOf(of, lines, by, now)
  const refusal = (lines: string, of = note) => {
    try {
      return cosigned(of, lines)
    } catch (error) {
      return (error as CosignatureRefused).reason
    }
  }

  test('stands behind the signature of the log, and says who saw the checkpoint when', () => {
    const both = cosigned(note, `${one.cosign(note, at)}\n${other.cosign(note, at + 1)}\n`)
    expect(both.startsWith(`${note}— witness.example/1 `)).toBe(true)
    expect(signaturesOn(both, [...witnesses, verifier(signer)])).toEqual({
      signer: 'compstream/log',
      cosignatures: [
        seen,
        { witness: 'witness.example/2', key_id: idOf(other), signed_at: '2026-04-01T00:00:01.000Z' },
      ],
    })
    expect(signaturesOn(both, [verifier(signer)])).toEqual({ signer: 'compstream/log', cosignatures: [] })
  })

  test('alone does not sign a checkpoint, and its key none by the form of a log', () => {
    const both = cosigned(note, one.cosign(note, at))
    expect(signedBy(both, witnesses)).toBeNull()
    expect(() => cosigned(note, note.split('\n\n')[1]!, [...witnesses, verifier(signer)])).toThrow()
  })

  test('replaces an earlier one of the same witness, and no later one', () => {
    const first = cosigned(note, `${one.cosign(note, at)}\n${other.cosign(note, at)}`)
    const later = cosigned(first, `${one.cosign(note, at + 60)}\n${one.cosign(note, at + 30)}`)
    expect(later).toBe(`${note}${other.cosign(note, at)}\n${one.cosign(note, at + 60)}\n`)
    expect(cosigned(later, one.cosign(note, at + 59))).toBe(later)
    expect([isSignedFurther(later, first), isSignedFurther(later, later)]).toEqual([true, false])
    expect(isSignedFurther(first, `${first}x\n`)).toBe(false)
    expect(isSignedFurther(note, first)).toBe(false)
  })

  test('is taken from an answer with lines of unknown keys, which are ignored', () => {
    const long = `— witness.example/1 ${Buffer.alloc(4 + 8 + 2_420, 6).toString('base64')}`
    const stranger = newWitness('witness.example/1').cosign(note, at)
    const answer = `${long}\n${one.cosign(note, at)}\n${stranger}\n`
    expect(cosigned(note, answer)).toBe(`${note}${one.cosign(note, at)}\n`)
  })

  test.each([
    ['a wrong line of its witness', `${one.cosign(note.replace('1234', '1235'), at + 60)}\n`],
    ['a wrong line of another witness', `${other.cosign(note.replace('1234', '1235'), at)}\n`],
    ['a line that cannot be read', 'x\n'],
    ['an empty line', '\nx\n'],
    ['a line without an end', 'x'],
  ])('takes the place of %s', (_, line) => {
    expect(cosigned(`${note}${line}`, one.cosign(note, at))).toBe(`${note}${one.cosign(note, at)}\n`)
  })

  test('is refused of an unknown key, of another checkpoint, of another time, and where it cannot be read', () => {
    const good = one.cosign(note, at)
    const early = Buffer.from(good.split(' ')[2]!, 'base64')
    early[11]! ^= 1
    const larger = signedNote({ ...checkpoint, size: 1_235 }, signer)
    expect({
      'an unknown key': refusal(newWitness('witness.example/1').cosign(note, at)),
      'an unknown name': refusal(good.replace('example/1', 'example/3')),
      'another checkpoint': refusal(one.cosign(larger, at)),
      'another time': refusal(`— witness.example/1 ${early.toString('base64')}`),
      'a time that no date shows': refusal(one.cosign(note, 2n ** 63n)),
      'one that is cut off': refusal(good.slice(0, 60)),
      'a second line that is none': refusal(`${good}\nmore`),
      'a whole note': refusal(`${note}${good}`),
      nothing: refusal(' '),
      'no time': refusal(one.cosign(note, 0)),
      'a time ahead of the clock': refusal(one.cosign(note, at + 301)),
    }).toEqual({
      'an unknown key': 'unknown_witness',
      'an unknown name': 'unknown_witness',
      'another checkpoint': 'wrong_cosignature',
      'another time': 'wrong_cosignature',
      'a time that no date shows': 'wrong_cosignature',
      'one that is cut off': 'wrong_cosignature',
      'a second line that is none': 'unreadable',
      'a whole note': 'unreadable',
      nothing: 'unreadable',
      'no time': 'wrong_cosignature',
      'a time ahead of the clock': 'wrong_cosignature',
    })
    expect(cosigned(note, one.cosign(note, at + 300))).toContain('witness.example/1')
  })

  test('that is changed later has the whole note rejected by who knows the witness', () => {
    const changed = cosigned(note, one.cosign(note, at)).replace(/(.)(.{20})\n$/, (_, a, rest) => {
      return `${a === 'A' ? 'B' : 'A'}${rest}\n`
    })
    expect(signaturesOn(changed, [...witnesses, verifier(signer)])).toBeNull()
    expect(signedBy(changed, [verifier(signer)])).toBe('compstream/log')
  })
})
