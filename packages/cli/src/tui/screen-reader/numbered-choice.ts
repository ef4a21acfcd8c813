import { harmlessLine } from '../../text/harmless.ts'

/** A choice that is read aloud and answered with a number. */
export interface NumberedChoice {
  /** Already harmless. */
  question: readonly string[]
  options: readonly { label: string; take: () => void }[]
  /** Set if free text is an answer too. */
  takeWords?: (words: string) => void
  /** Called for an empty line. */
  leave: () => void
  /** Whether another client may have answered meanwhile. */
  isOpen?: () => boolean
}

export function choiceLines({ question, options, takeWords }: NumberedChoice): string[] {
  const numbers = options.length === 0 ? '' : `Type a number from 1 to ${options.length}`
  const words = takeWords ? (numbers === '' ? 'Type your answer' : ', or your own text') : ''
  return [
    ...question,
    ...options.map(({ label }, index) => `${index + 1}. ${harmlessLine(label)}`),
    `${numbers}${words}. An empty line postpones it.`,
  ]
}

/** Handles typed input. Returns a message if it is not a valid answer. */
export function answerChoice(choice: NumberedChoice, line: string): string | undefined {
  const typed = line.trim()
  if (typed === '') {
    choice.leave()
    return undefined
  }
  const option = /^\d+$/.test(typed) ? choice.options[Number(typed) - 1] : undefined
  if (option) {
    option.take()
    return undefined
  }
  if (choice.takeWords) {
    choice.takeWords(typed)
    return undefined
  }
  return `${harmlessLine(typed)} is not one of the numbers. Type 1 to ${choice.options.length}.`
}
