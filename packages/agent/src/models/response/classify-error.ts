import type { ModelErrorKind } from '../model.ts'

/** What is known of a failed call. */
export interface ErrorFacts {
  status: number | undefined
  /** Codes, types and reasons of the provider, in lower case. */
  codes: readonly string[]
  /** Its text, message and body. */
  text: string
  /** The answer did not arrive, is incomplete or is unreadable. */
  isTransport: boolean
}

/**
 * Classifies a failed call. Precise codes decide first, then the status, then vague codes, and wording only among the kinds that
 * a status leaves open. So a 400 stays an invalid request even if its code is `api_error` or its message mentions a timeout.
 */
export function classifyError(facts: ErrorFacts): ModelErrorKind {
  const { status, codes, text } = facts
  if (status === 413) return 'context-overflow'
  const precise = kindOfCode(codes, preciseCodes)
  if (precise) return precise
  if (status === 401) return 'auth'
  if (status === 402) return 'quota'
  if (status === 403) return kindOfForbidden(text)
  const kind = kindOfCode(codes, limitCodes) ?? kindOfStatus(status) ?? kindOfCode(codes, vagueCodes)
  if (kind === 'rate-limited') return kindOfLimit(text)
  if (kind === 'overloaded') return saysOverflow(text) ? 'context-overflow' : 'overloaded'
  if (kind === 'invalid-request') return kindOfInvalidRequest(text)
  return kind ?? kindOfWording(facts)
}

/** Codes that determine the kind, whatever the status. Four-digit codes are those of Z.ai. */
const preciseCodes = codeTable({
  'context-overflow': [
    '1261',
    'context_length_exceeded',
    'context_window_exceeded',
    'exceed_context_size_error',
    'model_max_prompt_tokens_exceeded',
    'request_too_large',
    'too_many_prompt_tokens',
  ],
  quota: [
    '1113', // no balance
    '1304', // calls per day
    '1308', // usage limit of a plan
    '1309', // plan expired
    '1310', // weekly or monthly limit
    'billing_error',
    'billing_hard_limit_reached',
    'billing_not_active',
    'budget_exceeded',
    'credit_balance_too_low',
    'exceeded_current_quota_error',
    'insufficient_balance',
    'insufficient_credits',
    'insufficient_quota',
    'payment_required',
    'usage_limit_reached',
  ],
  auth: [
    'account_deactivated',
    'api_key_invalid',
    'authentication_error',
    'invalid_api_key',
    'invalid_authentication_error',
    'unauthenticated',
  ],
  refused: ['1301', 'content_filter', 'content_policy_violation', 'invalid_prompt', 'responsibleaipolicyviolation'],
  // Groq answers 400 when the model wrote a malformed tool call. The request was valid, and a retry may succeed.
  overloaded: ['tool_use_failed'],
})

/** Codes of a limit. The text determines whether waiting helps. */
const limitCodes = codeTable({
  'rate-limited': [
    'rate_limit_error',
    'rate_limit_exceeded',
    'resource_exhausted',
    'throttlingexception',
    'too_many_requests',
  ],
})

/** Vague codes: Ollama sends `api_error` with every status. They count only without a status. */
const vagueCodes = codeTable({
  overloaded: [
    'api_error',
    'deadline_exceeded',
    'engine_overloaded',
    'engine_overloaded_error',
    'internal',
    'internal_server_error',
    'overloaded',
    'overloaded_error',
    'server_error',
    'server_is_overloaded',
    'server_overloaded',
    'service_unavailable',
    'service_unavailable_error',
    'slow_down',
    'timeout_error',
    'unavailable',
  ],
  auth: ['permission_denied', 'permission_error'],
  'invalid-request': [
    'failed_precondition',
    'invalid_argument',
    'invalid_request_error',
    'model_not_found',
    'not_found',
    'not_found_error',
  ],
})

function codeTable(codes: Partial<Record<ModelErrorKind, string[]>>): ReadonlyMap<string, ModelErrorKind> {
  return new Map(Object.entries(codes).flatMap(([kind, each]) => each.map((code) => [code, kind as ModelErrorKind])))
}

function kindOfCode(codes: readonly string[], known: ReadonlyMap<string, ModelErrorKind>): ModelErrorKind | undefined {
  const code = codes.find((each) => known.has(each))
  return code === undefined ? undefined : known.get(code)
}

function kindOfStatus(status: number | undefined): ModelErrorKind | undefined {
  if (status === undefined || status < 400) return undefined
  if (status === 429) return 'rate-limited'
  if (status === 408 || status === 499) return 'network'
  // 498 is Groq's status for a service tier without free capacity.
  if (status === 409 || status === 425 || status === 498 || status >= 500) return 'overloaded'
  return 'invalid-request'
}

function kindOfForbidden(text: string): ModelErrorKind {
  if (quotaWording.test(text)) return 'quota'
  return /requires moderation|input was flagged/i.test(text) ? 'refused' : 'auth'
}

/** An exhausted quota has the status of a rate limit, but waiting does not help. */
function kindOfLimit(text: string): ModelErrorKind {
  if (isTooLargeAlone(text)) return 'context-overflow'
  // Google adds "check your plan and billing details" to every limit. Only a daily limit and exhausted credit are a
  // quota.
  const isGoogle = /RESOURCE_EXHAUSTED/.test(text)
  const quota = isGoogle ? /PerDay|limit: 0\b|credits are depleted/ : quotaWording
  return quota.test(text) ? 'quota' : 'rate-limited'
}

function kindOfInvalidRequest(text: string): ModelErrorKind {
  if (saysOverflow(text)) return 'context-overflow'
  if (quotaWording.test(text)) return 'quota'
  if (/api key not valid|invalid api key|incorrect api key/i.test(text)) return 'auth'
  return refusalWording.test(text) ? 'refused' : 'invalid-request'
}

/** Sentences about money or a plan. The word "billing" alone proves nothing: Groq links to its billing page in every rate limit. */
const quotaWording = new RegExp(
  [
    'insufficient (?:balance|credit|fund|quota)',
    'credit balance is too low',
    'exceeded (?:your )?current quota',
    '(?:add|purchase|buy|any) (?:more |\\d+ )?credits',
    'credits are depleted',
    'plan and billing',
    'billing (?:hard |soft )?limit|billing is (?:not active|disabled)|requires? billing|enable billing',
    'budget has been exceeded',
    'key limit exceeded',
    'usage limits?\\b.{0,40}regain access',
    'usage limit reached',
    '(?:weekly|monthly) (?:usage |spend(?:ing)? )?limit',
    'free-models-per-day',
    '余额不足',
  ].join('|'),
  'i',
)

const refusalWording =
  /usage polic(?:y|ies)|content (?:management |filtering )?policy|content exists risk|considered high risk|unsafe or sensitive content/i

function kindOfWording({ text, isTransport }: ErrorFacts): ModelErrorKind {
  if (saysOverflow(text)) return 'context-overflow'
  if (isTransport) return 'network'
  if (quotaWording.test(text)) return 'quota'
  if (/rate.?limit|too many requests|throttl/i.test(text)) return 'rate-limited'
  if (/overloaded|over capacity|server error|service unavailable|internal error/i.test(text)) return 'overloaded'
  if (/timed? ?out|socket|connection|terminated|network|ended without/i.test(text)) return 'network'
  return 'unknown'
}

/** The text by which a provider reports that a request is too long for the model. */
interface OverflowPattern {
  from: string
  pattern: RegExp
  /** It has the status of a rate limit, but waiting does not help: the request alone exceeds the limit. */
  alsoThrottled?: true
}

export const overflowPatterns: readonly OverflowPattern[] = [
  { from: 'Anthropic', pattern: /prompt is too long/i },
  { from: 'Anthropic', pattern: /input length and `?max_tokens`? exceed context limit/i },
  { from: 'Anthropic', pattern: /extra usage is required for long context/i, alsoThrottled: true },
  { from: 'OpenAI', pattern: /exceeds the context window of this model/i },
  { from: 'OpenAI', pattern: /maximum context length is [\d,]+ tokens/i },
  { from: 'OpenAI', pattern: /\brequest too large for\b/i, alsoThrottled: true },
  // The limit on content has eight digits. The same text about a name or a call id has a limit of two or three digits.
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

/** Texts of rate limits, which may count tokens too. */
const throttled =
  /please wait|throttl|rate.?limit|too many requests|per (?:minute|day|hour)|\bTPM\b|\bRPM\b|try again (?:in|later)/i

export function saysOverflow(text: string): boolean {
  const isThrottled = throttled.test(text)
  return overflowPatterns.some(({ pattern, alsoThrottled }) => (!isThrottled || alsoThrottled) && pattern.test(text))
}

/** Whether a rate-limited request exceeds the limit alone. */
function isTooLargeAlone(text: string): boolean {
  return overflowPatterns.some(({ pattern, alsoThrottled }) => alsoThrottled && pattern.test(text))
}
