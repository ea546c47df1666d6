import { technicalDeadline } from '../application/commands/technical-deadlines.ts'

/** How long a look may take before it is made once more, in milliseconds: its connection may lead nowhere. */
const LATE_MS = 2_000
/** Looks under way: a slow database does not get ever more of them. */
const MOST_AT_ONCE = 2

/**
 * Answers concurrent questions with one look: a look that begins after all of them,
 * so that nobody is told what was true before he asked. A look that is late is made a second time, and the first answer counts.
 */
export class Gathered<Question, Answer> {
  readonly #look: (questions: readonly Question[]) => Promise<Answer>
  readonly #isOrdered: boolean
  #next: { readonly questions: Question[]; readonly answer: Promise<Answer>; begin(): void } | undefined
  #underWay = 0

  /** @param order `ordered`: a look writes; it is made once, and waits for the end of the one before. */
  constructor(look: (questions: readonly Question[]) => Promise<Answer>, order?: 'ordered') {
    this.#look = look
    this.#isOrdered = order === 'ordered'
  }

  ask(question: Question): Promise<Answer> {
    if (!this.#next) {
      const questions: Question[] = []
      let begin: () => void = () => undefined
      const answer = new Promise<Answer>((resolve) => {
        begin = () => resolve(this.#answer(questions))
      })
      this.#next = { questions, answer, begin }
      this.#beginSoon()
    }
    this.#next.questions.push(question)
    return this.#next.answer
  }

  /** All questions of this turn of the event loop share it. */
  #beginSoon(): void {
    setImmediate(() => {
      if (!this.#next || this.#underWay === (this.#isOrdered ? 1 : MOST_AT_ONCE)) return
      const { begin } = this.#next
      this.#next = undefined
      begin()
    })
  }

  async #answer(questions: readonly Question[]): Promise<Answer> {
    this.#underWay += 1
    try {
      const look = this.#look(questions)
      return await (this.#isOrdered ? look : this.#orOneMore(look, questions))
    } finally {
      this.#underWay -= 1
      this.#beginSoon()
    }
  }

  /** The answer of a look, or of another one when it is late. */
  async #orOneMore(look: Promise<Answer>, questions: readonly Question[]): Promise<Answer> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<'late'>((resolve) => {
      timer = setTimeout(() => resolve('late'), technicalDeadline(LATE_MS)).unref()
    })
    const first = await Promise.race([look, late]).finally(() => clearTimeout(timer))
    if (first !== 'late') return first
    return Promise.any([look, this.#look(questions)]).catch(({ errors }: AggregateError) => {
      throw errors[0]
    })
  }
}
