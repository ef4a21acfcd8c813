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
  /** Told what a call has used that failed, or was aborted, after it had said so: it has to be paid all the same. */
  onFailed?: (paid: Pick<Summary, 'usage' | 'reference'>) => Promise<void>
}

export interface Summary {
  /** Empty where the model said nothing. */
  text: string
  usage: Usage | undefined
  reference: Omit<RequestReference, 'leafId'>
}

/** One model call without tools, for its text. Throws what the call throws; one that came to its end counts, aborted or not. */
export async function summarize({ model, signal, onFailed, ...request }: SummaryRequest): Promise<Summary> {
  signal.throwIfAborted()
  const { system, prompt, maxOutputTokens } = request
  const messages = [{ role: 'user' as const, content: [text(prompt)] }]
  const call = model.prepare({ system, tools: [], messages, thinkingLevel: 'off', maxOutputTokens })
  const { reference } = call
  let words = ''
  let usage: Usage | undefined
  let finish: FinishReason | undefined
  try {
    for await (const part of call.stream(signal)) {
      if (part.type === 'text_delta') words += part.text
      else if (part.type === 'usage') usage = part.usage
      else if (part.type === 'finish') finish = part.reason
    }
  } catch (error) {
    if (usage) await onFailed?.({ usage: withCost(usage, model), reference })
    throw error
  }
  const said = words.trim()
  return {
    text: finish === 'length' && said !== '' ? `${said}\n\n(It was longer than it may be, and ends here.)` : said,
    usage: usage && withCost(usage, model),
    reference,
  }
}

function withCost(usage: Usage, model: Model): Usage {
  const cost = model.costOf?.(usage)
  return cost === undefined ? usage : { ...usage, cost }
}
