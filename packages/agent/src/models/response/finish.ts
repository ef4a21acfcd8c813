import type { LanguageModelV4FinishReason } from '@ai-sdk/provider'
import type { Usage } from '@tapetree/session'
import type { FinishReason, ModelLimits } from '../model.ts'
import { ModelError, type ModelErrorKind } from '../model-error.ts'

export interface Ending {
  provider: string
  reason: LanguageModelV4FinishReason
  usage: Usage
  limits: ModelLimits
  hasCalls: boolean
  /** The host drops input that does not fit without saying so. */
  cutsSilently?: boolean | undefined
}

/** Why the answer ended; throws where the end is a failure. */
export function finishOf(ending: Ending): FinishReason {
  const { provider, reason, usage, limits } = ending
  const failure = failureOf(reason)
  if (failure)
    throw new ModelError(failure.kind, `${provider} ${failure.words}${reason.raw ? ` (${reason.raw})` : ''}.`)
  if (isSilentOverflow(ending)) {
    const words = `${provider} took ${usage.inputTokens} tokens for a window of ${limits.contextTokens}`
    throw new ModelError('context-overflow', `${words}: it did not see all of them.`)
  }
  switch (reason.unified) {
    case 'stop':
    case 'other':
      if (reason.raw === 'pause_turn' && !ending.hasCalls) return 'pause'
      // Some servers end an answer with calls as if it had none.
      return ending.hasCalls ? 'tool-calls' : reason.unified
    case 'length':
    case 'tool-calls':
      return reason.unified
    default:
      return 'other'
  }
}

function failureOf({
  unified,
  raw = '',
}: LanguageModelV4FinishReason): { kind: ModelErrorKind; words: string } | undefined {
  if (unified === 'content-filter') return { kind: 'refused', words: 'refused to answer' }
  if (unified === 'interrupted') return { kind: 'network', words: 'ended the answer in the middle' }
  const kind = failedEndings.get(raw.toLowerCase()) ?? (unified === 'error' ? 'overloaded' : undefined)
  return kind && { kind, words: 'ended the answer with an error' }
}

/** What some providers say instead of an error; another try may go well. */
const failedEndings = new Map<string, ModelErrorKind>([
  ['error', 'overloaded'], // OpenRouter
  ['insufficient_system_resource', 'overloaded'], // DeepSeek
  ['network_error', 'network'], // Z.ai
  ['malformed_function_call', 'overloaded'], // Google
  ['malformed_response', 'overloaded'], // Google
  ['unexpected_tool_call', 'overloaded'], // Google
])

/**
 * A few hosts drop what is too long and answer the rest; some have no room left for an answer. More input than the window holds proves
 * nothing of other hosts: their usage may sum several steps, or the window may be larger than we know.
 */
function isSilentOverflow({ reason, usage, limits, cutsSilently = false }: Ending): boolean {
  const { inputTokens = 0, outputTokens } = usage
  if (cutsSilently && inputTokens > limits.contextTokens) return true
  return reason.unified === 'length' && outputTokens === 0 && inputTokens >= 0.9 * limits.contextTokens
}
