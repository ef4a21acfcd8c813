import type { PermissionRequest, PermissionResult } from './requests.ts'
import type { Answer, Question } from '../tools/tool.ts'

type Request = Omit<PermissionRequest, 'requestId'>

/** Puts a question as a record, and turns the result into an answer. `ask` gives nothing where the question was withdrawn. */
export async function askUser(
  { question, options }: Question,
  asker: Omit<Request, 'title' | 'options'>,
  ask: (request: Request) => Promise<PermissionResult | undefined>,
): Promise<Answer> {
  const asked = options.map(({ label }, index) => ({ optionId: String(index + 1), label, kind: 'answer' as const }))
  const { input, ...rest } = asker
  const result = await ask({ ...rest, title: question, ...(input && { input }), options: asked })
  if (!result) return { text: '', isCancelled: true }
  const chosen = asked.find(({ optionId }) => optionId === result.optionId)?.label
  return { text: result.text ?? chosen ?? '', isCancelled: result.outcome !== 'allowed' }
}
