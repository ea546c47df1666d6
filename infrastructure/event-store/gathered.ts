import { setImmediate as othersTurn } from 'node:timers/promises'

/**
 * Answers everybody who asks at about the same time with one look: a look that begins after all of their questions,
 * so that nobody is told what was true before he asked. One look is under way at a time.
 */
export class Gathered<Question, Answer> {
  readonly #look: (questions: readonly Question[]) => Promise<Answer>
  #next: { readonly questions: Question[]; readonly answer: Promise<Answer> } | undefined
  #underWay: Promise<unknown> = Promise.resolve()

  constructor(look: (questions: readonly Question[]) => Promise<Answer>) {
    this.#look = look
  }

  ask(question: Question): Promise<Answer> {
    if (this.#next) {
      this.#next.questions.push(question)
      return this.#next.answer
    }
    const questions = [question]
    const answer = this.#underWay.then(async () => {
      // everybody who asks in this turn of the event loop, too
      await othersTurn()
      this.#next = undefined
      return this.#look(questions)
    })
    this.#next = { questions, answer }
    this.#underWay = answer.catch(() => undefined)
    return answer
  }
}
