/** What a process of a bench can be asked for, by name. */
export type Answers = Record<string, (about: never) => unknown>

/** Answers the process that started this one, until that one goes. */
export function answerParent(answers: Answers): void {
  process.on('message', (message) => void reply(message as Question, answers))
  process.on('disconnect', () => process.exit())
}

interface Question {
  id: number
  question: string
  about: unknown
}

async function reply({ id, question, about }: Question, answers: Answers): Promise<void> {
  try {
    const answer = await (answers[question] as (about: unknown) => unknown)(about)
    process.send?.({ id, answer })
  } catch (error) {
    process.send?.({ id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) })
  }
}
