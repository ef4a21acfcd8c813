import { APICallError, InvalidResponseDataError, LoadAPIKeyError } from '@ai-sdk/provider'
import { describe, expect, test } from 'vitest'
import { ModelError } from '../model.ts'
import { toModelError, retryAfterMs } from './provider-error.ts'

const now = Date.parse('2026-11-20T10:00:00Z')

describe('toModelError', () => {
  test('HTTP 429 with retry-after: the status, the code and the header', () => {
    const error = modelError(
      apiError({
        statusCode: 429,
        message: 'Number of requests has exceeded your limit',
        responseHeaders: { 'Retry-After': '7' },
        data: {
          type: 'error',
          error: { type: 'rate_limit_error', message: 'Number of requests has exceeded your limit' },
        },
      }),
    )
    expect(error).toMatchObject({ kind: 'rate-limited', status: 429, retryAfterMs: 7000 })
    expect(error.message).toBe(
      'acme has limited the rate of requests (429): Number of requests has exceeded your limit',
    )
  })

  test('HTTP 400 of OpenAI with an overflow code', () => {
    const data = { error: { message: 'Too long.', type: 'invalid_request_error', code: 'context_length_exceeded' } }
    expect(modelError(apiError({ statusCode: 400, data }))).toMatchObject({ kind: 'context-overflow', status: 400 })
  })

  test('an overload as the first event of a stream: 529', () => {
    const responseBody = JSON.stringify({ type: 'overloaded_error', message: 'Overloaded' })
    expect(modelError(apiError({ statusCode: 529, message: 'Overloaded', responseBody }))).toMatchObject({
      kind: 'overloaded',
      status: 529,
    })
  })

  test('an error in the stream is a plain object, and is read like any other', () => {
    const error = modelError({
      message: 'Overloaded',
      type: 'overloaded_error',
      statusCode: 529,
      isRetryable: true,
      data: { type: 'overloaded_error', message: 'Overloaded' },
    })
    expect(error).toMatchObject({ kind: 'overloaded', status: 529 })
    expect(error).toBeInstanceOf(Error)
  })

  test('a code that is a number is a status', () => {
    expect(modelError({ message: 'Provider returned error', code: 429 })).toMatchObject({
      kind: 'rate-limited',
      status: 429,
    })
    expect(modelError({ message: 'Provider returned error', code: '502' })).toMatchObject({
      kind: 'overloaded',
      status: 502,
    })
  })

  test('a socket that was closed: status 200, with the reason in its cause', () => {
    const cause = Object.assign(new TypeError('terminated'), {
      cause: Object.assign(new Error('other side closed'), { code: 'UND_ERR_SOCKET' }),
    })
    const error = modelError(apiError({ statusCode: 200, message: 'Failed to process successful response', cause }))
    expect(error).toMatchObject({ kind: 'network', status: undefined })
    expect(error.message).toBe('acme could not be reached or closed the connection: other side closed')
  })

  test('a connection that is refused: no status', () => {
    const cause = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:1'), { code: 'ECONNREFUSED' })
    const error = modelError(apiError({ message: 'Cannot connect to API', cause, isRetryable: true }))
    expect(error).toMatchObject({ kind: 'network', status: undefined })
  })

  test('an error of another copy of the SDK is recognized by its marker', () => {
    const foreign = Object.assign(new Error('Cannot connect to API'), {
      [Symbol.for('vercel.ai.error.AI_APICallError')]: true,
      isRetryable: true,
      requestBodyValues: { messages: ['a secret'] },
    })
    expect(modelError(foreign)).toMatchObject({ kind: 'network', cause: undefined })
  })

  test('the error does not contain the request', () => {
    const error = modelError(apiError({ statusCode: 500, requestBodyValues: { messages: ['a secret'] } }))
    expect(JSON.stringify([error.message, error.cause])).not.toContain('a secret')
  })

  test('a key that a server repeats is removed', () => {
    const message =
      'Incorrect API key provided: sk-proj-abcdefghijklmnop1234. Authorization was Bearer abcdefghijklmnopqrst.'
    expect(modelError(apiError({ statusCode: 401, message })).message).not.toMatch(/abcdefgh/)
  })

  test('a body with an unusual shape is shown and read', () => {
    const error = modelError(
      apiError({
        statusCode: 400,
        message: 'Bad Request',
        responseBody: '{"error":"prompt too long; exceeded max context length by 4 tokens"}',
      }),
    )
    expect(error.kind).toBe('context-overflow')
    expect(error.message).toContain('exceeded max context length by 4 tokens')
  })

  test('a page of HTML is not shown', () => {
    const error = modelError(
      apiError({ statusCode: 502, message: 'Bad Gateway', responseBody: '<html><h1>502</h1></html>' }),
    )
    expect(error.message).toBe('acme is not available at the moment (502): Bad Gateway')
  })

  test('an unreadable answer is a network error', () => {
    expect(modelError(new InvalidResponseDataError({ data: {}, message: 'ended without a finish reason' })).kind).toBe(
      'network',
    )
  })

  test('a missing key is an auth error', () => {
    expect(modelError(new LoadAPIKeyError({ message: 'API key is missing.' })).kind).toBe('auth')
  })

  test('an invalid URL is not retried', () => {
    const cause = Object.assign(new TypeError('Invalid URL'), { code: 'ERR_INVALID_URL' })
    expect(modelError(new TypeError('Failed to parse URL from nowhere', { cause })).kind).toBe('unknown')
  })

  test.each([undefined, null, 'boom', 42, {}, []])('%j becomes an error too', (thrown) => {
    expect(modelError(thrown)).toMatchObject({ kind: 'unknown', message: 'acme failed.' })
  })

  test.each(['input token count ', 'usage limits ', 'context length ', 'prompt ', 'sk-', 'E', 'try again in 1'])(
    'a megabyte of %j is read quickly',
    (piece) => {
      const message = piece.repeat(1_000_000 / piece.length)
      const before = process.cpuUsage()
      modelError(apiError({ statusCode: 400, message, responseBody: message }))
      modelError(apiError({ statusCode: 429, message, responseBody: message }))
      modelError({ message })
      const { user, system } = process.cpuUsage(before)
      expect((user + system) / 1000).toBeLessThan(1000)
    },
  )

  test('a ModelError is unchanged', () => {
    const error = new ModelError('quota', 'Used up.')
    expect(toModelError(error, { provider: 'acme', now })).toBe(error)
  })
})

function modelError(error: unknown): ModelError {
  return toModelError(error, { provider: 'acme', now })
}

function apiError(given: Partial<ConstructorParameters<typeof APICallError>[0]>): APICallError {
  return new APICallError({ message: '', url: 'http://127.0.0.1', requestBodyValues: {}, ...given })
}

describe('retryAfterMs', () => {
  test.each([
    [{ 'retry-after': '20' }, 20_000],
    [{ 'retry-after': '0' }, 0],
    [{ 'retry-after': '1.5' }, 1500],
    [{ 'retry-after': 'Fri, 20 Nov 2026 10:00:30 GMT' }, 30_000],
    [{ 'retry-after': 'Fri, 20 Nov 2026 09:00:00 GMT' }, 0],
    [{ 'retry-after-ms': '250' }, 250],
    [{ 'retry-after-ms': '250', 'retry-after': '20' }, 250],
    [{ 'retry-after-ms': 'soon', 'retry-after': '20' }, 20_000],
    [{ 'retry-after': '-5' }, undefined],
    [{ 'retry-after': 'soon' }, undefined],
    [{ 'retry-after': '' }, undefined],
    [{}, undefined],
  ])('reads %j as %s ms', (headers, expected) => {
    expect(retryAfterMs({ headers, text: '' }, now)).toBe(expected)
  })

  test.each([
    ['{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay": "34.074824224s"}', 34_075],
    ['Rate limit reached. Please try again in 7.66s. Visit your account page.', 7660],
    ['Please try again in 20ms.', 20],
    ['Please try again in 6m0s.', 360_000],
    ['Please try again in 1h2m3s.', 3_723_000],
    ['Please retry after 58 seconds.', 58_000],
    ['request reached max request: 3, please try again after 1 seconds', 1000],
    ['No deployments available for selected model, Try again in 60 seconds. Passed model=gpt-5.', 60_000],
    ['Please retry in 14.07s.', 14_070],
    ['Please try again in 2 hours, 5 minutes.', 7_500_000],
    ['Please try again in 1 minute and 30 seconds.', 60_000],
    ['Please try again in 3 days.', 259_200_000],
    ['Retry after 5', undefined],
    ['Please try again in a while.', undefined],
    ['Please try again later.', undefined],
  ])('reads %s', (text, expected) => {
    expect(retryAfterMs({ headers: {}, text }, now)).toBe(expected)
  })

  test('a header takes precedence over the text', () => {
    expect(retryAfterMs({ headers: { 'retry-after': '3' }, text: 'Please try again in 9s.' }, now)).toBe(3000)
  })
})
