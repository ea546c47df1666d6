/** Writes plain texts as a PDF 1.4 document of letter pages, in the fonts that every reader has. */

const PAGE = { width: 612, height: 792, margin: 72 } as const
const SIZES = { title: 18, heading: 12, text: 10 } as const
/** Characters of a line at the most, as wide as they are on the average. */
const WIDTHS = { title: 44, heading: 70, text: 88 } as const

export interface PdfLine {
  readonly as: keyof typeof SIZES
  readonly text: string
}

/** @param title what readers show in the window. @param at epoch milliseconds of its making. */
export function pdfOf(title: string, at: number, lines: readonly PdfLine[]): Buffer {
  const pages = pagesOf(lines.flatMap(wrapped))
  const first = 5
  const objects: Buffer[] = [
    ascii('<< /Type /Catalog /Pages 2 0 R /Lang (en-US) >>'),
    ascii(
      `<< /Type /Pages /Kids [${pages.map((_, index) => `${first + 1 + 2 * index} 0 R`).join(' ')}] /Count ${pages.length} >>`,
    ),
    ascii('<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>'),
    ascii('<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold /Encoding /WinAnsiEncoding >>'),
    Buffer.concat([ascii('<< /Title '), shown(title), ascii(` /CreationDate (${dateOf(at)}) >>`)]),
    ...pages.flatMap((page, index) => [
      ascii(
        `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 ${PAGE.width} ${PAGE.height}] ` +
          `/Resources << /Font << /F1 3 0 R /F2 4 0 R >> >> /Contents ${first + 2 + 2 * index} 0 R >>`,
      ),
      streamOf(contentOf(page)),
    ]),
  ]
  const parts: Buffer[] = [Buffer.from('%PDF-1.4\n%\xe2\xe3\xcf\xd3\n', 'latin1')]
  let length = parts[0]!.length
  const offsets = objects.map((object, index) => {
    const at = length
    const part = Buffer.concat([ascii(`${index + 1} 0 obj\n`), object, ascii('\nendobj\n')])
    parts.push(part)
    length += part.length
    return at
  })
  const table = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`).join('')
  const size = objects.length + 1
  parts.push(
    ascii(
      `xref\n0 ${size}\n0000000000 65535 f \n${table}trailer\n<< /Size ${size} /Root 1 0 R /Info 5 0 R >>\n` +
        `startxref\n${length}\n%%EOF\n`,
    ),
  )
  return Buffer.concat(parts)
}

function wrapped({ as, text }: PdfLine): readonly PdfLine[] {
  const most = WIDTHS[as]
  const lines: string[] = []
  let line = ''
  for (const word of text.split(/\s+/).flatMap((one) => one.match(new RegExp(`.{1,${most}}`, 'gu')) ?? [])) {
    if (line !== '' && line.length + 1 + word.length > most) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line].map((one) => ({ as, text: one }))
}

type Placed = PdfLine & { readonly y: number }

function pagesOf(lines: readonly PdfLine[]): readonly (readonly Placed[])[] {
  const pages: Placed[][] = [[]]
  let y: number = PAGE.height - PAGE.margin
  for (const line of lines) {
    y -= SIZES[line.as] * 1.5
    if (y < PAGE.margin) {
      pages.push([])
      y = PAGE.height - PAGE.margin
    }
    pages.at(-1)!.push({ ...line, y })
  }
  return pages
}

function contentOf(lines: readonly Placed[]): Buffer {
  return Buffer.concat(
    lines.flatMap(({ as, text, y }) => [
      ascii(`BT /${as === 'text' ? 'F1' : 'F2'} ${SIZES[as]} Tf ${PAGE.margin} ${y.toFixed(1)} Td `),
      shown(text),
      ascii(' Tj ET\n'),
    ]),
  )
}

function streamOf(content: Buffer): Buffer {
  return Buffer.concat([ascii(`<< /Length ${content.length} >>\nstream\n`), content, ascii('\nendstream')])
}

/** A text as a hexadecimal string of WinAnsi: what the fonts lack loses its accents, or is a question mark. */
function shown(text: string): Buffer {
  const bytes = [...text].flatMap((character) => {
    const code = character.codePointAt(0)!
    if ((code >= 0x20 && code < 0x7f) || (code >= 0xa0 && code <= 0xff)) return [code]
    const special = WIN_ANSI[character]
    if (special !== undefined) return [special]
    const plain = character.normalize('NFKD').replace(/\p{M}/gu, '')
    return /^[\x20-\x7e]+$/.test(plain) ? [...Buffer.from(plain, 'latin1')] : [0x3f]
  })
  return ascii(`<${Buffer.from(bytes).toString('hex')}>`)
}

/** What stands elsewhere than in Unicode. */
const WIN_ANSI: Readonly<Record<string, number>> = {
  '€': 0x80,
  '…': 0x85,
  Š: 0x8a,
  Œ: 0x8c,
  Ž: 0x8e,
  '‘': 0x91,
  '’': 0x92,
  '“': 0x93,
  '”': 0x94,
  '•': 0x95,
  '–': 0x96,
  '—': 0x97,
  '™': 0x99,
  š: 0x9a,
  œ: 0x9c,
  ž: 0x9e,
  Ÿ: 0x9f,
}

function dateOf(at: number): string {
  return `D:${new Date(at).toISOString().replaceAll(/\D/g, '').slice(0, 14)}Z`
}

function ascii(text: string): Buffer {
  return Buffer.from(text, 'ascii')
}
