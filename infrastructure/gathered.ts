import { technicalDeadline } from '../application/commands/technical-deadlines.ts'

/** How long others wait for a look that does not end, in milliseconds: its connection may lead nowhere. */
const WAITED_FOR_MS = 2_000

/**
 * Answers everybody who asks at about the same time with one look: a look that begins after all of their questions,
 * so that nobody is told what was true before he asked.
 */
export class Gathered<Question, Answer> {
  readonly #look: (questions: readonly Question[]) => Promise<Answer>
  readonly #atOnce: number
  #next: { readonly questions: Question[]; readonly answer: Promise<Answer>; begin(): void } | undefined
  #underWay = 0

  /** @param atOnce looks that are under way at the most, but for those that take long. */
  constructor(look: (questions: readonly Question[]) => Promise<Answer>, atOnce = 1) {
    this.#look = look
    this.#atOnce = atOnce
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

  /** Everybody who asks in this turn of the event loop comes along. */
  #beginSoon(): void {
    setImmediate(() => {
      if (!this.#next || this.#underWay >= this.#atOnce) return
      const { begin } = this.#next
      this.#next = undefined
      begin()
    })
  }

  async #answer(questions: readonly Question[]): Promise<Answer> {
    this.#underWay += 1
    let isUnderWay = true
    const end = () => {
      if (isUnderWay) this.#underWay -= 1
      isUnderWay = false
      this.#beginSoon()
    }
    const late = setTimeout(end, technicalDeadline(WAITED_FOR_MS)).unref()
    try {
      return await this.#look(questions)
    } finally {
      clearTimeout(late)
      end()
    }
  }
}
