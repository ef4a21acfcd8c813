import { describe, expect, test } from 'vitest'
import { classifyError, type ErrorFacts } from './classify-error.ts'

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
  ])('a status of %i without words is %s', (status, kind) => {
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
  ])('the code %s says %s, also in a stream where there is no status', (code, kind) => {
    expect(kindOf({ codes: [code] })).toBe(kind)
  })

  test('a permanent error whose text speaks of a timeout is not one that passes', () => {
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
  ])('the quota of %s is used up (%i %s)', (_, status, text) => {
    expect(kindOf({ status, text })).toBe('quota')
  })

  test('Google says the same of a minute and of a day; only the day is a quota', () => {
    const codes = ['resource_exhausted']
    const text = 'You exceeded your current quota, please check your plan and billing details. RESOURCE_EXHAUSTED'
    expect(kindOf({ status: 429, codes, text: `${text} GenerateRequestsPerMinutePerProject` })).toBe('rate-limited')
    expect(kindOf({ status: 429, codes, text: `${text} GenerateRequestsPerDayPerProject` })).toBe('quota')
    expect(kindOf({ status: 429, codes, text: `${text} limit: 0, model: gemini-3-pro` })).toBe('quota')
  })

  test('a limit of tokens each minute passes, but not for a request that is over it by itself', () => {
    const limit = 'on tokens per min (TPM): Limit 30000'
    expect(kindOf({ status: 429, text: `Rate limit reached for gpt-4o ${limit}, Used 29000, Requested 5000.` })).toBe(
      'rate-limited',
    )
    expect(kindOf({ status: 429, text: `Request too large for gpt-4o ${limit}, Requested 45000.` })).toBe(
      'context-overflow',
    )
  })

  test('a status outranks codes that say little', () => {
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

  test('a name with the word billing in a wrong request is no quota', () => {
    expect(kindOf({ status: 400, text: 'tools.3.create_billing_entry: invalid schema' })).toBe('invalid-request')
  })

  test('a malformed tool call of the model is worth another attempt', () => {
    const codes = ['invalid_request_error', 'tool_use_failed']
    expect(kindOf({ status: 400, codes, text: 'Tool call validation failed' })).toBe('overloaded')
  })

  test('a server that fails because of the length is not asked again with the same', () => {
    expect(kindOf({ status: 500, text: 'the request exceeds the available context size, try increasing it' })).toBe(
      'context-overflow',
    )
  })

  test('a key that Google does not know comes as a bad request', () => {
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
  ])('words are asked only where there is neither status nor code: %s', (text, kind) => {
    expect(kindOf({ text })).toBe(kind)
  })

  test('an answer that did not arrive whole is the network, whatever it said so far', () => {
    expect(kindOf({ isTransport: true, text: 'terminated' })).toBe('network')
  })
})

function kindOf(facts: Partial<ErrorFacts>): string {
  return classifyError({ status: undefined, codes: [], text: '', isTransport: false, ...facts })
}
