import { technicalDeadline } from '../application/commands/technical-deadlines.ts'

/** How long others wait for a look that does not end, in milliseconds: its connection may lead nowhere. */
const WAITED_FOR_MS = 2_000
/** Looks under way: a database that is slow for everybody does not get ever more of them. */
const MOST_AT_ONCE = 2

/**
 * Answers everybody who asks at about the same time with one look: a look that begins after all of their questions,
 * so that nobody is told what was true before he asked. One look is under way at a time, and one more where that takes long.
 */
export class Gathered<Question, Answer> {
  readonly #look: (questions: readonly Question[]) => Promise<Answer>
  readonly #isOrdered: boolean
  #next: { readonly questions: Question[]; readonly answer: Promise<Answer>; begin(): void } | undefined
  #underWay = 0
  /** Of those under way. */
  #late = 0

  /** @param order `ordered`: a look writes, and always waits for the end of the one before. */
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

  /** Everybody who asks in this turn of the event loop comes along. */
  #beginSoon(): void {
    setImmediate(() => {
      if (!this.#next || this.#underWay > this.#late || this.#underWay === MOST_AT_ONCE) return
      const { begin } = this.#next
      this.#next = undefined
      begin()
    })
  }

  async #answer(questions: readonly Question[]): Promise<Answer> {
    this.#underWay += 1
    let late = 0
    const beLate = () => {
      late = 1
      this.#late += 1
      this.#beginSoon()
    }
    const timer = this.#isOrdered ? undefined : setTimeout(beLate, technicalDeadline(WAITED_FOR_MS)).unref()
    try {
      return await this.#look(questions)
    } finally {
      clearTimeout(timer)
      this.#underWay -= 1
      this.#late -= late
      this.#beginSoon()
    }
  }
}
