/** How a provider says that a request is too long for the model. */
export interface OverflowPattern {
  from: string
  pattern: RegExp
  /** It says so with the status of a limit on use, but no waiting helps: the request alone is over the limit. */
  alsoThrottled?: true
}

export const overflowPatterns: readonly OverflowPattern[] = [
  { from: 'Anthropic', pattern: /prompt is too long/i },
  { from: 'Anthropic', pattern: /input length and `?max_tokens`? exceed context limit/i },
  { from: 'Anthropic', pattern: /extra usage is required for long context/i, alsoThrottled: true },
  { from: 'OpenAI', pattern: /exceeds the context window of this model/i },
  { from: 'OpenAI', pattern: /maximum context length is [\d,]+ tokens/i },
  { from: 'OpenAI', pattern: /\brequest too large for\b/i, alsoThrottled: true },
  // The limit on content has eight digits. The same sentence about a name or a call id has a limit of two or three.
  { from: 'OpenAI', pattern: /string too long\. expected a string with maximum length \d{6}/i },
  { from: 'Google', pattern: /input token count[^.]{0,40}exceeds the maximum number of tokens/i },
  { from: 'Google', pattern: /input context is too long/i },
  { from: 'OpenRouter', pattern: /exceeds the maximum allowed input length/i },
  { from: 'Groq', pattern: /reduce the length of the messages/i },
  { from: 'Mistral', pattern: /too large for model with [\d,]+ maximum context length/i },
  { from: 'xAI', pattern: /maximum prompt length is [\d,]+/i },
  { from: 'DeepSeek', pattern: /however, you requested [\d,]+ tokens/i },
  { from: 'Together', pattern: /longer than the model'?s (?:maximum )?context length/i },
  { from: 'Fireworks', pattern: /prompt is longer than (?:the )?maximum/i },
  { from: 'Cerebras', pattern: /current length is [\d,]+ while limit is [\d,]+/i },
  { from: 'Ollama', pattern: /prompt too long; exceeded (?:max )?context length/i },
  { from: 'Ollama', pattern: /input length exceeds (?:the |maximum )?context length/i },
  { from: 'llama.cpp', pattern: /exceeds? the available context size/i },
  { from: 'llama.cpp', pattern: /context size has been exceeded/i },
  { from: 'LM Studio', pattern: /greater than the context length/i },
  { from: 'LM Studio', pattern: /context (?:window|length)[^.]{0,40}(?:overflow|not enough)/i },
  { from: 'LM Studio', pattern: /context size has been exceeded/i },
  { from: 'LM Studio', pattern: /loaded with context length of only/i },
  { from: 'vLLM', pattern: /(?:prompt|input)[^.]{0,60}longer than the maximum model length/i },
  { from: 'vLLM', pattern: /context length is only [\d,]+ tokens/i },
  { from: 'Perplexity', pattern: /total length of all messages is too long/i },
  { from: 'TGI', pattern: /`inputs` tokens \+ `max_new_tokens` must be <=/i },
  { from: 'LiteLLM', pattern: /exceeds (?:the )?(?:model'?s )?maximum context length/i },
  { from: 'Bedrock', pattern: /input is too long for requested model/i },
  { from: 'Bedrock', pattern: /too many input tokens/i },
  { from: 'GitHub Copilot', pattern: /prompt token count of [\d,]+ exceeds the limit/i },
  { from: 'Kimi', pattern: /exceeded model token limit/i },
  { from: 'MiniMax', pattern: /context window exceeds limit/i },
  { from: 'Qwen', pattern: /range of input length should be/i },
  { from: 'Z.ai', pattern: /\bprompt (?:is )?too long|prompt exceeds max length/i },
  { from: 'many', pattern: /context[_ ](?:length|window)[_ ]exceeded/i },
  { from: 'many', pattern: /\btoo many tokens\b|\btoken limit exceeded\b/i },
]

/** Words of those who limit use; they may count tokens as well. */
const throttled =
  /please wait|throttl|rate.?limit|too many requests|per (?:minute|day|hour)|\bTPM\b|\bRPM\b|try again (?:in|later)/i

export function saysOverflow(text: string): boolean {
  const isThrottled = throttled.test(text)
  return overflowPatterns.some(({ pattern, alsoThrottled }) => (!isThrottled || alsoThrottled) && pattern.test(text))
}

/** Whether a request that met a limit on use is over it by itself. */
export function isTooLargeAlone(text: string): boolean {
  return overflowPatterns.some(({ pattern, alsoThrottled }) => alsoThrottled && pattern.test(text))
}
