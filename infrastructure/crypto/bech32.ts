/** Bech32 (BIP 173) without its limit of length, as age writes keys. */

const SYMBOLS = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l'
const GENERATOR = [0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3]
const CHECKSUM_SYMBOLS = 6

/** Bytes as a text with a prefix, in small letters. */
export function toBech32(prefix: string, bytes: Buffer): string {
  const values = regrouped(bytes, 8, 5, true)!
  const sum = polymod([...expanded(prefix), ...values, ...new Array<number>(CHECKSUM_SYMBOLS).fill(0)]) ^ 1
  const checksum = Array.from({ length: CHECKSUM_SYMBOLS }, (_, n) => (sum >>> (5 * (5 - n))) & 31)
  return `${prefix}1${[...values, ...checksum].map((value) => SYMBOLS[value]).join('')}`
}

/** The bytes of a text in small letters with a prefix; null: it is none. */
export function fromBech32(prefix: string, text: string): Buffer | null {
  if (!text.startsWith(`${prefix}1`) || text.length > 200) return null
  const values = Array.from(text.slice(prefix.length + 1), (symbol) => SYMBOLS.indexOf(symbol))
  if (values.length < CHECKSUM_SYMBOLS || values.includes(-1)) return null
  if (polymod([...expanded(prefix), ...values]) !== 1) return null
  const bytes = regrouped(values.slice(0, -CHECKSUM_SYMBOLS), 5, 8, false)
  return bytes && Buffer.from(bytes)
}

/** The bits of numbers in groups of another size; null where what is left over is no padding. */
function regrouped(
  values: Iterable<number>,
  from: number,
  to: number,
  pads: boolean,
): readonly number[] | null {
  const groups: number[] = []
  let held = 0
  let bits = 0
  for (const value of values) {
    held = ((held << from) | value) & 0xfff
    for (bits += from; bits >= to; ) {
      bits -= to
      groups.push((held >>> bits) & ((1 << to) - 1))
    }
  }
  const left = (held << (to - bits)) & ((1 << to) - 1)
  if (!pads) return bits >= from || left !== 0 ? null : groups
  if (bits > 0) groups.push(left)
  return groups
}

function polymod(values: readonly number[]): number {
  let sum = 1
  for (const value of values) {
    const top = sum >>> 25
    sum = ((sum & 0x1ffffff) << 5) ^ value
    for (const [bit, generator] of GENERATOR.entries()) if ((top >>> bit) & 1) sum ^= generator
  }
  return sum >>> 0
}

function expanded(prefix: string): readonly number[] {
  const codes = Array.from(prefix, (letter) => letter.charCodeAt(0))
  return [...codes.map((code) => code >>> 5), 0, ...codes.map((code) => code & 31)]
}
