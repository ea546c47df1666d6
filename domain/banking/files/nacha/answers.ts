import { z } from 'zod'
import { linesOf, NachaFault } from './read.ts'

/**
 * The answer of a bank, or of the file transfer, to files: our own format, since none is common for debits. JSON
 * lines: a beginning, a line for each file or batch, an end that counts them, so that a file which was cut short is seen.
 */
const Beginning = z.strictObject({
  format: z.literal('compstream.bank-answers'),
  version: z.literal(1),
  /** The routing number of the bank, as files name it. */
  bank: z.string().regex(/^\d{9}$/),
})
const Answer = z.strictObject({
  /** Its name, as it was in the outbox. */
  file: z.string().min(1).max(100),
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional(),
  /** Absent: the whole file. */
  batch: z.int().min(1).optional(),
  outcome: z.enum(['accepted', 'rejected']),
  reason: z
    .string()
    .max(200)
    .regex(/^[^\p{C}]*$/u)
    .optional(),
})
const End = z.strictObject({ end: z.literal(true), answers: z.int().min(0) })

/** What a bank answers to a file, or to one batch of it. */
export interface FileAnswer {
  readonly line: number
  readonly file: string
  readonly sha256: string | null
  /** Null: the whole file. */
  readonly batch: number | null
  readonly outcome: 'accepted' | 'rejected'
  readonly reason: string | null
}

export interface AnswersFile {
  readonly bank: string
  readonly answers: readonly FileAnswer[]
}

/** Whether a text claims to be answers: it begins as JSON. */
export function areAnswers(text: string): boolean {
  return text.startsWith('{')
}

/**
 * Reads answers. Nothing of a file counts unless all of it is whole.
 * @throws NachaFault
 */
export function readAnswers(text: string): AnswersFile {
  const lines = linesOf(text)
  const read = <T>(schema: z.ZodType<T>, index: number, expected: string): T => {
    const parsed = schema.safeParse(json(lines[index] ?? '', index + 1))
    if (parsed.success) return parsed.data
    const { path, message } = parsed.error.issues[0]!
    throw new NachaFault(index + 1, `this should be ${expected}: ${path.join('.')} ${message}`)
  }
  const { bank } = read(Beginning, 0, 'the beginning')
  if (lines.length < 2) throw new NachaFault(1, 'the file ends where its end should follow')
  const end = read(End, lines.length - 1, 'the end, or the file was cut short')
  const answers = lines.slice(1, -1).map((_, index): FileAnswer => {
    const { file, sha256 = null, batch = null, outcome, reason = null } = read(Answer, index + 1, 'an answer')
    return { line: index + 2, file, sha256, batch, outcome, reason }
  })
  if (end.answers !== answers.length) {
    throw new NachaFault(lines.length, `the end counts ${end.answers} answers, there are ${answers.length}`)
  }
  return { bank, answers }
}

function json(line: string, number: number): unknown {
  try {
    return JSON.parse(line)
  } catch {
    throw new NachaFault(number, 'the line is no JSON')
  }
}
