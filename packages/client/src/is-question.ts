import type { OpenQuestion } from './state-values.ts'

/** Whether a request asks the user for text. Any other request asks for permission, which typed text does not grant. */
export function isQuestion({ tool, options }: Pick<OpenQuestion, 'tool' | 'options'>): boolean {
  return tool === 'ask_user' || options.some(({ kind }) => kind === 'answer')
}
