import type { FakeErrorKind } from './fake-script.ts'

interface OpenaiError {
  status: number
  type: string
  code: string | null
  /** The code of a response that fails in the stream. */
  streamCode: string
  words: string
}

/** The errors of OpenAI and of compatible hosts. */
export const openaiErrors: Record<FakeErrorKind, OpenaiError> = {
  'rate-limited': {
    status: 429,
    type: 'requests',
    code: 'rate_limit_exceeded',
    streamCode: 'rate_limit_exceeded',
    words: 'Rate limit reached for requests per min (RPM): Limit 3, Used 3, Requested 1.',
  },
  'server-error': {
    status: 500,
    type: 'server_error',
    code: null,
    streamCode: 'server_error',
    words: 'The server had an error while processing your request. Sorry about that!',
  },
  unavailable: {
    status: 503,
    type: 'service_unavailable',
    code: null,
    streamCode: 'server_error',
    words: 'That model is currently not available.',
  },
  overloaded: {
    status: 503,
    type: 'server_error',
    code: 'slow_down',
    streamCode: 'server_error',
    words: 'The engine is currently overloaded, please try again later.',
  },
  'context-overflow': {
    status: 400,
    type: 'invalid_request_error',
    code: 'context_length_exceeded',
    streamCode: 'context_length_exceeded',
    words: 'Your input exceeds the context window of this model. Please adjust your input and try again.',
  },
  auth: {
    status: 401,
    type: 'invalid_request_error',
    code: 'invalid_api_key',
    streamCode: 'invalid_api_key',
    words: 'Incorrect API key provided. You can find your API key in your account.',
  },
  quota: {
    status: 429,
    type: 'insufficient_quota',
    code: 'insufficient_quota',
    streamCode: 'insufficient_quota',
    words: 'You exceeded your current quota, please check your plan and billing details.',
  },
  'invalid-request': {
    status: 400,
    type: 'invalid_request_error',
    code: 'invalid_value',
    streamCode: 'invalid_value',
    words: "Invalid value for 'timeout': it must be a number.",
  },
}
