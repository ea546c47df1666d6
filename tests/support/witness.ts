import { createHash, generateKeyPairSync, sign } from 'node:crypto'

/** A witness of checkpoints, by C2SP `tlog-cosignature`, without a line of the product. */
interface Witness {
  /** Verifier key, in the form of `signed-note`. */
  readonly key: string
  /** The line of its signature on a note. @param seconds when it signs, in seconds since 1970. */
  cosign(note: string, seconds: number | bigint): string
}

export function newWitness(name: string): Witness {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)
  const typed = Buffer.concat([Buffer.from([4]), raw])
  const id = createHash('sha256').update(`${name}\n`).update(typed).digest().subarray(0, 4)
  return {
    key: `${name}+${id.toString('hex')}+${typed.toString('base64')}`,
    cosign(note, seconds) {
      const text = note.slice(0, note.indexOf('\n\n') + 1)
      const time = Buffer.alloc(8)
      time.writeBigUInt64BE(BigInt(seconds))
      const signature = sign(null, Buffer.from(`cosignature/v1\ntime ${seconds}\n${text}`), privateKey)
      return `— ${name} ${Buffer.concat([id, time, signature]).toString('base64')}`
    },
  }
}
