import type { ModelErrorKind } from './model-error.ts'
import { isTooLargeAlone, saysOverflow } from './overflow-patterns.ts'

/** What is known of a failed call. */
export interface ErrorFacts {
  status: number | undefined
  /** Codes, types and reasons that the provider gave, in lower case. */
  codes: readonly string[]
  /** What it said, message and body. */
  text: string
  /** The answer did not arrive, or not whole, or not readable. */
  isTransport: boolean
}

/**
 * Which kind of failure it is: codes and status decide, words only where those leave it open. So a request that is wrong stays
 * wrong, also if its message speaks of a time-out.
 */
export function classifyError(facts: ErrorFacts): ModelErrorKind {
  const { status, text } = facts
  if (status === 413) return 'context-overflow'
  const exact = kindOfCode(facts.codes, exactCodes)
  if (exact) return exact
  if (status === 401) return 'auth'
  if (status === 402) return 'quota'
  if (status === 403) return noMoney.test(text) ? 'quota' : 'auth'
  const broad = kindOfCode(facts.codes, broadCodes) ?? kindOfStatus(status)
  if (broad === 'rate-limited') return limited(text)
  if (broad === 'overloaded') return saysOverflow(text) ? 'context-overflow' : 'overloaded'
  if (broad === 'invalid-request') return kindOfWrong(text)
  return broad ?? kindOfWords(facts)
}

const exactCodes = kinds({
  'context-overflow': [
    'context_length_exceeded',
    'context_window_exceeded',
    'exceed_context_size_error',
    'model_max_prompt_tokens_exceeded',
    'request_too_large',
    'string_above_max_length',
  ],
  quota: [
    'billing_error',
    'billing_hard_limit_reached',
    'billing_not_active',
    'credit_balance_too_low',
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
  refused: ['content_filter', 'content_policy_violation', 'invalid_prompt', 'responsibleaipolicyviolation'],
})

/** Codes that say where to look, not what it is. */
const broadCodes = kinds({
  'rate-limited': [
    'rate_limit_error',
    'rate_limit_exceeded',
    'resource_exhausted',
    'throttlingexception',
    'too_many_requests',
  ],
  overloaded: [
    'api_error',
    'deadline_exceeded',
    'engine_overloaded',
    'internal',
    'internal_server_error',
    'overloaded',
    'overloaded_error',
    'server_error',
    'server_overloaded',
    'service_unavailable',
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

function kinds(codes: Partial<Record<ModelErrorKind, string[]>>): ReadonlyMap<string, ModelErrorKind> {
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
  if (status === 409 || status === 425 || status >= 500) return 'overloaded'
  return 'invalid-request'
}

/** A quota that is used up looks like a limit that passes, but waiting does not help. */
function limited(text: string): ModelErrorKind {
  if (isTooLargeAlone(text)) return 'context-overflow'
  // Google says "check your plan and billing" of every limit; only those of a day are like a quota.
  const isGoogle = /RESOURCE_EXHAUSTED/.test(text)
  return (isGoogle ? /PerDay|limit: 0\b/ : noMoney).test(text) ? 'quota' : 'rate-limited'
}

function kindOfWrong(text: string): ModelErrorKind {
  if (saysOverflow(text)) return 'context-overflow'
  if (noMoney.test(text)) return 'quota'
  if (/api key not valid|invalid api key|incorrect api key/i.test(text)) return 'auth'
  return /usage polic(?:y|ies)|content (?:management )?policy/i.test(text) ? 'refused' : 'invalid-request'
}

const noMoney =
  /insufficient (?:balance|credit|fund|quota)|credit balance is too low|exceeded your current quota|(?:add|purchase|buy|any) (?:more )?credits|billing|usage limits?\b.{0,40}regain access|monthly (?:usage |spend(?:ing)? )?limit/i

function kindOfWords({ text, isTransport }: ErrorFacts): ModelErrorKind {
  if (saysOverflow(text)) return 'context-overflow'
  if (isTransport) return 'network'
  if (noMoney.test(text)) return 'quota'
  if (/rate.?limit|too many requests|throttl/i.test(text)) return 'rate-limited'
  if (/overloaded|over capacity|server error|service unavailable|internal error/i.test(text)) return 'overloaded'
  if (/timed? ?out|socket|connection|terminated|network|ended without/i.test(text)) return 'network'
  return 'unknown'
}
