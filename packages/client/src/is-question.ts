import type { OpenQuestion } from './state-values.ts'

/** Whether it asks what the user wants to say. Anything else asks for leave, and words that were typed do not give that. */
export function isQuestion({ tool, options }: Pick<OpenQuestion, 'tool' | 'options'>): boolean {
  return tool === 'ask_user' || options.some(({ kind }) => kind === 'answer')
}
