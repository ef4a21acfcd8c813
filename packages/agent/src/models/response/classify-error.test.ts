import { describe, expect, test } from 'vitest'
import { classifyError, overflowPatterns, saysOverflow, type ErrorFacts } from './classify-error.ts'

describe('classifyError', () => {
  test.each([
    [400, 'invalid-request'],
    [401, 'auth'],
    [402, 'quota'],
    [403, 'auth'],
    [404, 'invalid-request'],
    [408, 'network'],
    [409, 'overloaded'],
    [413, 'context-overflow'],
    [422, 'invalid-request'],
    [429, 'rate-limited'],
    [499, 'network'],
    [500, 'overloaded'],
    [502, 'overloaded'],
    [503, 'overloaded'],
    [504, 'overloaded'],
    [529, 'overloaded'],
  ])('a status of %i without text is %s', (status, kind) => {
    expect(kindOf({ status })).toBe(kind)
  })

  test.each([
    ['context_length_exceeded', 'context-overflow'],
    ['exceed_context_size_error', 'context-overflow'],
    ['insufficient_quota', 'quota'],
    ['billing_error', 'quota'],
    ['invalid_api_key', 'auth'],
    ['api_key_invalid', 'auth'],
    ['content_policy_violation', 'refused'],
    ['rate_limit_error', 'rate-limited'],
    ['resource_exhausted', 'rate-limited'],
    ['overloaded_error', 'overloaded'],
    ['server_error', 'overloaded'],
    ['unavailable', 'overloaded'],
    ['not_found_error', 'invalid-request'],
  ])('the code %s means %s, also in a stream without a status', (code, kind) => {
    expect(kindOf({ codes: [code] })).toBe(kind)
  })

  test('a permanent error whose text mentions a timeout is not transient', () => {
    expect(kindOf({ status: 400, text: 'Invalid value for timeout: connection timed out is not a number' })).toBe(
      'invalid-request',
    )
    expect(kindOf({ codes: ['invalid_request_error'], text: 'timeout must be positive' })).toBe('invalid-request')
    expect(kindOf({ status: 404, text: 'model network-timeout-1 not found, try again later' })).toBe('invalid-request')
  })

  test.each([
    ['Anthropic', 400, 'Your credit balance is too low to access the Anthropic API.'],
    ['Anthropic', 400, 'You have reached your specified API usage limits. You will regain access on 2026-12-01.'],
    ['OpenAI', 429, 'You exceeded your current quota, please check your plan and billing details.'],
    ['OpenRouter', 402, 'Insufficient credits. Add more using your account page.'],
    ['DeepSeek', 402, 'Insufficient Balance'],
    ['xAI', 403, "Your newly created team doesn't have any credits yet."],
  ])('the quota of %s is exhausted (%i %s)', (_, status, text) => {
    expect(kindOf({ status, text })).toBe('quota')
  })

  test('Google uses the same text for a minute and a day; only the day is a quota', () => {
    const codes = ['resource_exhausted']
    const text = 'You exceeded your current quota, please check your plan and billing details. RESOURCE_EXHAUSTED'
    expect(kindOf({ status: 429, codes, text: `${text} GenerateRequestsPerMinutePerProject` })).toBe('rate-limited')
    expect(kindOf({ status: 429, codes, text: `${text} GenerateRequestsPerDayPerProject` })).toBe('quota')
    expect(kindOf({ status: 429, codes, text: `${text} limit: 0, model: gemini-3-pro` })).toBe('quota')
  })

  test('a limit of tokens per minute is transient, unless the request exceeds it alone', () => {
    const limit = 'on tokens per min (TPM): Limit 30000'
    expect(kindOf({ status: 429, text: `Rate limit reached for gpt-4o ${limit}, Used 29000, Requested 5000.` })).toBe(
      'rate-limited',
    )
    expect(kindOf({ status: 429, text: `Request too large for gpt-4o ${limit}, Requested 45000.` })).toBe(
      'context-overflow',
    )
  })

  test('a status outranks vague codes', () => {
    const vague = ['api_error', 'internal_server_error', 'server_error', 'invalid_request_error', 'not_found_error']
    for (let status = 400; status < 600; status += 1) {
      for (const code of vague)
        expect([status, code, kindOf({ status, codes: [code] })]).toEqual([status, code, kindOf({ status })])
    }
  })

  test.each([
    'https://console.example.com/settings/billing',
    'https://example.com/account/credits',
    'https://example.com/docs/usage-limits',
  ])('a link to %s does not turn a rate limit into a quota', (link) => {
    const text = `Rate limit reached, please try again in 4.77s. Need more tokens? Upgrade today at ${link}`
    expect(kindOf({ status: 429, text })).toBe('rate-limited')
  })

  test('the word billing in a name in an invalid request is not a quota', () => {
    expect(kindOf({ status: 400, text: 'tools.3.create_billing_entry: invalid schema' })).toBe('invalid-request')
  })

  test('a malformed tool call of the model is worth another attempt', () => {
    const codes = ['invalid_request_error', 'tool_use_failed']
    expect(kindOf({ status: 400, codes, text: 'Tool call validation failed' })).toBe('overloaded')
  })

  test('a server that fails because of the length is not retried with the same request', () => {
    expect(kindOf({ status: 500, text: 'the request exceeds the available context size, try increasing it' })).toBe(
      'context-overflow',
    )
  })

  test('an invalid key is a bad request at Google', () => {
    expect(kindOf({ status: 400, text: 'API key not valid. Please pass a valid API key.' })).toBe('auth')
  })

  test('a prompt that violates a policy is refused', () => {
    const text = 'Invalid prompt: your prompt was flagged as potentially violating our usage policy.'
    expect(kindOf({ status: 400, text })).toBe('refused')
  })

  test.each([
    ['Provider returned error: rate limit exceeded', 'rate-limited'],
    ['The engine is currently overloaded', 'overloaded'],
    ['upstream connect error or disconnect: connection timed out', 'network'],
    ['prompt is too long: 5 tokens > 4 maximum', 'context-overflow'],
    ['something else entirely', 'unknown'],
  ])('the text decides only without status and code: %s', (text, kind) => {
    expect(kindOf({ text })).toBe(kind)
  })

  test('an incomplete answer is a network error, whatever its text', () => {
    expect(kindOf({ isTransport: true, text: 'terminated' })).toBe('network')
  })
})

function kindOf(facts: Partial<ErrorFacts>): string {
  return classifyError({ status: undefined, codes: [], text: '', isTransport: false, ...facts })
}

/** Known error texts of each host. */
const said: [from: string, status: number, words: string][] = [
  ['Anthropic', 400, 'prompt is too long: 213462 tokens > 200000 maximum'],
  [
    'Anthropic',
    400,
    'input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length',
  ],
  ['Anthropic', 429, 'Extra usage is required for long context requests.'],
  ['Anthropic', 413, 'Request exceeds the maximum size'],
  ['OpenAI', 400, 'Your input exceeds the context window of this model. Please adjust your input and try again.'],
  [
    'OpenAI',
    400,
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 140012 tokens.",
  ],
  [
    'OpenAI',
    429,
    'Request too large for gpt-4o in organization org on tokens per min (TPM): Limit 30000, Requested 45000.',
  ],
  [
    'OpenAI',
    400,
    "Invalid 'input[4].output': string too long. Expected a string with maximum length 10485760, but got a string with length 12345678 instead.",
  ],
  ['Google', 400, 'The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).'],
  ['Google', 400, 'The input token count exceeds the maximum number of tokens allowed 1048576.'],
  ['Google', 500, 'Your input context is too long. Please reduce it or switch to another model.'],
  [
    'OpenRouter',
    400,
    "This endpoint's maximum context length is 32768 tokens. However, you requested about 40960 tokens.",
  ],
  ['OpenRouter', 400, 'Input length 300000 exceeds the maximum allowed input length of 262144 tokens.'],
  ['Groq', 400, 'Please reduce the length of the messages or completion.'],
  ['Groq', 413, 'Request too large for model `llama` on tokens per minute (TPM): Limit 6000, Requested 9500'],
  [
    'Mistral',
    400,
    'Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length',
  ],
  ['xAI', 400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens."],
  [
    'DeepSeek',
    400,
    "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens (62000 in the messages).",
  ],
  ['Together', 422, "The input (40001 tokens) is longer than the model's context length (32768 tokens)."],
  ['Fireworks', 400, 'The prompt is longer than the maximum of 131072'],
  [
    'Cerebras',
    400,
    'Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192',
  ],
  ['Ollama', 400, 'prompt too long; exceeded max context length by 4 tokens'],
  ['Ollama', 500, 'the input length exceeds the context length'],
  ['llama.cpp', 400, 'the request exceeds the available context size, try increasing it'],
  ['llama.cpp', 500, 'request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it'],
  ['llama.cpp', 500, 'Context size has been exceeded.'],
  ['LM Studio', 400, 'The number of tokens to keep from the initial prompt is greater than the context length.'],
  ['LM Studio', 400, 'Context length of the model is not enough for this prompt'],
  ['LM Studio', 400, 'Context size has been exceeded.'],
  ['LM Studio', 400, 'However, the model is loaded with context length of only 4096 tokens, which is not enough.'],
  [
    'vLLM',
    400,
    "However, the model's context length is only 40960 tokens, resulting in a maximum input length of 40960 tokens.",
  ],
  ['Perplexity', 400, 'The total length of all messages is too long.'],
  ['TGI', 422, '`inputs` tokens + `max_new_tokens` must be <= 131073. Given: 140000 `inputs` tokens'],
  ['vLLM', 400, 'The prompt (total length 9000) is longer than the maximum model length of 8192.'],
  ['LiteLLM', 400, "Requested token count exceeds the model's maximum context length of 131072 tokens."],
  ['Bedrock', 400, 'Input is too long for requested model.'],
  ['Bedrock', 400, 'Too many input tokens. Max input tokens: 8192, request input token count: 9000'],
  ['GitHub Copilot', 400, 'prompt token count of 130000 exceeds the limit of 128000'],
  ['Kimi', 400, 'Your request exceeded model token limit: 262144 (requested: 270000)'],
  ['MiniMax', 400, 'invalid params, context window exceeds limit'],
  ['Qwen', 400, 'Range of input length should be [1, 129024]'],
  ['Z.ai', 400, 'Prompt too long'],
  ['many', 400, 'context_length_exceeded'],
  ['many', 400, 'Error: too many tokens in the request'],
]

const notOverflow: [from: string, status: number, words: string][] = [
  ['Bedrock', 429, 'ThrottlingException: Too many tokens, please wait before trying again.'],
  ['Bedrock', 400, 'Too many tokens, please wait before trying again.'],
  ['Anthropic', 429, "This request would exceed your organization's rate limit of 30,000 input tokens per minute."],
  ['OpenAI', 429, 'Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29990, Requested 400.'],
  ['Mistral', 429, 'Rate limit exceeded: too many tokens per minute'],
  [
    'OpenAI',
    400,
    "Invalid 'input[2].call_id': string too long. Expected a string with maximum length 64, but got a string with length 83 instead.",
  ],
  ['any', 400, 'max_tokens must be less than 8192'],
  ['any', 400, 'The value of temperature exceeds the maximum of 2'],
]

describe('the texts of a context overflow', () => {
  test.each(said)('%s (%i): %s', (_, status, text) => {
    expect(classifyError({ status, codes: [], text, isTransport: false })).toBe('context-overflow')
  })

  test.each(notOverflow)('do not include %s (%i): %s', (_, status, text) => {
    expect(classifyError({ status, codes: [], text, isTransport: false })).not.toBe('context-overflow')
  })

  test('every pattern has a known text of its host', () => {
    const unproven = overflowPatterns.filter(
      ({ from, pattern }) => !said.some(([by, , words]) => by === from && pattern.test(words)),
    )
    expect(unproven).toEqual([])
  })

  test('an empty body is not an overflow', () => {
    expect(saysOverflow('')).toBe(false)
  })
})
