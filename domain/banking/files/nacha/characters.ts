/**
 * The characters of a NACHA file: printable ASCII. Source: Nacha Operating Rules, Appendix Three, "ACH Record Format
 * Specifications": alphameric fields hold 0 to 9, A to Z, a to z, blank and special characters of the ASCII set.
 */
const PRINTABLE = /^[\x20-\x7e]*$/

/** Letters that do not come apart into a plain one and a mark, and marks of typesetters. */
const REPLACED: Readonly<Record<string, string>> = {
  ß: 'ss',
  ẞ: 'SS',
  æ: 'ae',
  Æ: 'AE',
  œ: 'oe',
  Œ: 'OE',
  ø: 'o',
  Ø: 'O',
  ł: 'l',
  Ł: 'L',
  đ: 'd',
  Đ: 'D',
  ð: 'd',
  Ð: 'D',
  þ: 'th',
  Þ: 'TH',
  ħ: 'h',
  Ħ: 'H',
  ı: 'i',
  ŋ: 'n',
  Ŋ: 'N',
  '‘': "'",
  '’': "'",
  '‚': "'",
  '“': '"',
  '”': '"',
  '„': '"',
  '«': '"',
  '»': '"',
  '´': "'",
  '·': '.',
  '‐': '-',
  '‑': '-',
  '‒': '-',
  '–': '-',
  '—': '-',
  '−': '-',
  '•': '.',
  '×': 'x',
  '⁄': '/',
}

/** True for a text that stands in a file as it is. */
export function isWritable(text: string): boolean {
  return PRINTABLE.test(text)
}

/**
 * A text in the characters of a file: marks over letters are dropped, other letters of the Latin script are written with
 * two, and what has no counterpart is left out.
 */
export function transliterated(text: string): string {
  const plain = [...text.normalize('NFKD')]
    .map((character) => REPLACED[character] ?? character)
    .join('')
    .replace(/[\p{Mn}\p{Cf}]/gu, '')
    .replace(/[^\x20-\x7e]+/g, ' ')
  return plain.replace(/ {2,}/g, ' ').trim()
}

/** A name of at most a number of characters; null where no letter or digit of it can be written. */
export function writtenName(name: string, width: number): string | null {
  const written = transliterated(name).slice(0, width).trimEnd()
  return /[A-Za-z0-9]/.test(written) ? written : null
}
