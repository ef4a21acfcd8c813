import { text, type RequestReference, type Usage } from '@tapetree/session'
import type { FinishReason, Model } from '../models/model.ts'

export interface SummaryRequest {
  model: Model
  /** What is to be written, and how. */
  system: string
  /** The material, as the words of one user message: calls and results in it are text and need no pairs. */
  prompt: string
  maxOutputTokens: number
  signal: AbortSignal
}

export interface Summary {
  /** Empty where the model said nothing. */
  text: string
  usage: Usage | undefined
  reference: Omit<RequestReference, 'leafId'>
}

/** One model call without tools, for its text. Throws what the call throws; a call that came to its end has to be paid, aborted or not. */
export async function summarise({ model, signal, ...request }: SummaryRequest): Promise<Summary> {
  signal.throwIfAborted()
  const { system, prompt, maxOutputTokens } = request
  const messages = [{ role: 'user' as const, content: [text(prompt)] }]
  const call = model.prepare({ system, tools: [], messages, thinkingLevel: 'off', maxOutputTokens })
  let words = ''
  let usage: Usage | undefined
  let finish: FinishReason | undefined
  for await (const part of call.stream(signal)) {
    if (part.type === 'text_delta') words += part.text
    else if (part.type === 'usage') usage = part.usage
    else if (part.type === 'finish') finish = part.reason
  }
  const said = words.trim()
  const cost = usage && model.costOf?.(usage)
  return {
    text: finish === 'length' && said !== '' ? `${said}\n\n(It was longer than it may be, and ends here.)` : said,
    usage: cost === undefined ? usage : { ...usage, cost },
    reference: call.reference,
  }
}
