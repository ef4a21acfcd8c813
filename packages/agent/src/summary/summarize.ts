import { text, type Usage } from '@tapetree/session'
import type { RequestReference } from '@tapetree/session/format'
import type { FinishReason, Model } from '../models/model.ts'

export interface SummaryRequest {
  model: Model
  /** The instructions for the summary. */
  system: string
  /** The material, as the text of one user message: calls and results in it are text and need no pairs. */
  prompt: string
  maxOutputTokens: number
  signal: AbortSignal
  /** Called with the usage that a failed or aborted call had reported: it must be paid anyway. */
  onFailed?: (paid: Pick<Summary, 'usage' | 'reference'>) => Promise<void>
}

export interface Summary {
  /** Empty if the model returned no text. */
  text: string
  usage: Usage | undefined
  reference: Omit<RequestReference, 'leafId'>
}

/**
 * One model call without tools, for its text. Rethrows errors of the call; a completed call counts even if it was
 * aborted.
 */
export async function summarize({ model, signal, onFailed, ...request }: SummaryRequest): Promise<Summary> {
  signal.throwIfAborted()
  const { system, prompt, maxOutputTokens } = request
  const messages = [{ role: 'user' as const, content: [text(prompt)] }]
  const call = model.prepare({ system, tools: [], messages, thinkingLevel: 'off', maxOutputTokens })
  const { reference } = call
  let answer = ''
  let usage: Usage | undefined
  let finish: FinishReason | undefined
  try {
    for await (const part of call.stream(signal)) {
      if (part.type === 'text_delta') answer += part.text
      else if (part.type === 'usage') usage = part.usage
      else if (part.type === 'finish') finish = part.reason
    }
  } catch (error) {
    if (usage) await onFailed?.({ usage: withCost(usage, model), reference })
    throw error
  }
  const said = answer.trim()
  return {
    text:
      finish === 'length' && said !== '' ? `${said}\n\n(The summary was cut off here at its maximum length.)` : said,
    usage: usage && withCost(usage, model),
    reference,
  }
}

function withCost(usage: Usage, model: Model): Usage {
  const cost = model.costOf?.(usage)
  return cost === undefined ? usage : { ...usage, cost }
}
