import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { FakeClock } from '../testing/fake-clock.ts'
import { ModelError, type Model, type ModelErrorKind } from './model.ts'
import { anthropic } from './providers/anthropic.ts'
import { google } from './providers/google.ts'
import { openai } from './providers/openai.ts'
import { openaiCompatible } from './providers/openai-compatible.ts'

/** A response that reports a failure, as a provider, a local server or a proxy has sent it. */
interface FailureBody {
  /** `anthropic`, `openai` and `google` use the format of that name; all other hosts use Chat Completions. */
  host: string
  status: number
  body: unknown
  headers?: Record<string, string>
  /** How long the response asks the client to wait. */
  waitMs?: number
}

const failures: Record<Exclude<ModelErrorKind, 'unknown' | 'empty-answer'>, FailureBody[]> = {
  'rate-limited': [
    {
      host: 'anthropic',
      status: 429,
      body: anthropicError(
        'rate_limit_error',
        'This request would exceed the rate limit for your organization (x) of 20,000 input tokens per minute. For details, refer to: https://docs.anthropic.com/en/api/rate-limits. You can see the response headers for current usage. Please reduce the prompt length or the maximum tokens requested, or try again later. You may also contact sales at https://www.anthropic.com/contact-sales to discuss your options for a rate limit increase.',
      ),
      headers: { 'retry-after': '42' },
      waitMs: 42000,
    },
    {
      host: 'anthropic',
      status: 429,
      body: anthropicError(
        'rate_limit_error',
        'Number of request tokens has exceeded your per-minute rate limit (https://docs.anthropic.com/en/api/rate-limits); see the response headers for current usage. Please reduce the prompt length or the maximum tokens requested, or try again later.',
      ),
      headers: { 'retry-after': '7' },
      waitMs: 7000,
    },
    {
      host: 'anthropic',
      status: 429,
      body: anthropicError(
        'rate_limit_error',
        'Number of concurrent connections has exceeded your rate limit. Please try again later or contact sales at https://www.anthropic.com/contact-sales to discuss your options for a rate limit increase.',
      ),
    },
    {
      host: 'anthropic',
      status: 200,
      body: 'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}}}\n\nevent: error\ndata: {"type":"error","error":{"type":"rate_limit_error","message":"Rate limited"}}\n\n',
    },
    {
      host: 'openai',
      status: 429,
      body: openaiError(
        'Rate limit reached for gpt-5 in organization org-x on tokens per min (TPM): Limit 30000, Used 25000, Requested 7000. Please try again in 4.1s. Visit https://platform.openai.com/account/rate-limits to learn more.',
        { type: 'tokens', code: 'rate_limit_exceeded' },
      ),
      waitMs: 4100,
    },
    {
      host: 'openai',
      status: 429,
      body: openaiError(
        'Rate limit reached for gpt-5 in organization org-x on requests per min (RPM): Limit 3, Used 3, Requested 1. Please try again in 20s.',
        { type: 'requests', code: 'rate_limit_exceeded' },
      ),
      headers: { 'retry-after-ms': '20001' },
      waitMs: 20001,
    },
    {
      host: 'openai',
      status: 429,
      body: openaiError(
        'Rate limit reached for gpt-4o in organization org-x on requests per day (RPD): Limit 200, Used 200, Requested 1. Please try again in 7m12s.',
        { type: 'requests', code: 'rate_limit_exceeded' },
      ),
      waitMs: 432000,
    },
    {
      host: 'openai',
      status: 200,
      body: 'event: response.failed\ndata: {"type":"response.failed","sequence_number":3,"response":{"id":"resp_1","object":"response","created_at":1,"status":"failed","error":{"code":"rate_limit_exceeded","message":"Rate limit reached for gpt-5.1 in organization org-x on tokens per min (TPM): Limit 30000, Used 22999, Requested 12528. Please try again in 11.054s. Visit https://platform.openai.com/account/rate-limits to learn more."},"incomplete_details":null,"output":[],"usage":null}}\n\n',
      waitMs: 11054,
    },
    {
      host: 'openai',
      status: 429,
      body: {
        error: {
          code: '429',
          message:
            'Requests to the Responses_Create Operation under Azure OpenAI API version 2025-04-01-preview have exceeded token rate limit of your current OpenAI S0 pricing tier. Please retry after 58 seconds.',
        },
      },
      waitMs: 58000,
    },
    {
      host: 'google',
      status: 429,
      body: googleError(
        'RESOURCE_EXHAUSTED',
        'You exceeded your current quota, please check your plan and billing details. * Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_paid_tier_input_token_count, limit: 1000000, model: gemini-2.5-flash Please retry in 14.07s.',
        [
          {
            '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
            violations: [
              {
                quotaMetric: 'generativelanguage.googleapis.com/generate_content_paid_tier_input_token_count',
                quotaId: 'GenerateContentPaidTierInputTokensPerModelPerMinute',
                quotaValue: '1000000',
              },
            ],
          },
          { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '14s' },
        ],
      ),
      waitMs: 14000,
    },
    {
      host: 'google',
      status: 429,
      body: googleError(
        'RESOURCE_EXHAUSTED',
        'Resource exhausted. Please try again later. Please refer to https://cloud.google.com/vertex-ai/generative-ai/docs/error-code-429 for more details.',
      ),
    },
    {
      host: 'groq',
      status: 429,
      body: openaiError(
        'Rate limit reached for model `llama-3.1-8b-instant` in organization `org_x` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Used 5034, Requested 1443. Please try again in 4.77s. Need more tokens? Upgrade to Dev Tier today at https://console.groq.com/settings/billing',
        { type: 'tokens', code: 'rate_limit_exceeded' },
      ),
      headers: { 'retry-after': '5' },
      waitMs: 5000,
    },
    {
      host: 'openrouter',
      status: 429,
      body: {
        error: {
          message: 'Provider returned error',
          code: 429,
          metadata: {
            raw: 'google/gemini-2.0-flash-exp:free is temporarily rate-limited upstream. Please retry shortly, or add your own key to accumulate your rate limits: https://openrouter.ai/settings/integrations',
            provider_name: 'Google',
          },
        },
      },
    },
    {
      host: 'openrouter',
      status: 200,
      body: ': OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\ndata: {"error":{"message":"Rate limit exceeded","code":429}}\n\n',
    },
    { host: 'mistral', status: 429, body: { message: 'Requests rate limit exceeded' } },
    {
      host: 'zai',
      status: 429,
      body: {
        error: {
          code: '1302',
          message:
            'High concurrency usage of this API, please reduce concurrency or contact customer service to increase limits',
        },
      },
    },
    { host: 'zai', status: 429, body: { error: { code: '1305', message: 'The API has triggered a rate limit.' } } },
    {
      host: 'moonshotai',
      status: 429,
      body: {
        error: {
          message: 'Your account x<y> request reached max request: 3, please try again after 1 seconds',
          type: 'rate_limit_reached_error',
        },
      },
      waitMs: 1000,
    },
    {
      host: 'xai',
      status: 429,
      body: {
        code: 'Some resource has been exhausted',
        error:
          'Too many requests for team x and model grok-4. Your team rate limit is: Requests per Minute (actual/limit): 61/60. To request higher rate limits, please reach out to support@x.ai.',
      },
    },
    {
      host: 'cerebras',
      status: 429,
      body: {
        message: 'Tokens per minute limit exceeded - too many tokens processed.',
        type: 'too_many_tokens_error',
        param: 'quota',
        code: 'token_quota_exceeded',
      },
    },
    {
      host: 'azure',
      status: 429,
      body: {
        error: {
          code: 'RateLimitReached',
          message:
            'Your requests to gpt-5 for gpt-5 in westeurope have exceeded token rate limit. Please retry after 26 seconds.',
        },
      },
      headers: { 'retry-after': '26' },
      waitMs: 26000,
    },
    {
      host: 'litellm',
      status: 429,
      body: openaiError(
        'litellm.RateLimitError: No deployments available for selected model, Try again in 60 seconds. Passed model=gpt-5.',
        { code: '429' },
      ),
      waitMs: 60000,
    },
    {
      host: 'proxy',
      status: 429,
      body: 'Too Many Requests',
      headers: { 'retry-after': 'Wed, 01 Jan 2098 00:00:00 GMT', 'content-type': 'text/plain' },
      waitMs: 86_400_000,
    },
  ],
  overloaded: [
    { host: 'anthropic', status: 529, body: anthropicError('overloaded_error', 'Overloaded') },
    { host: 'anthropic', status: 500, body: anthropicError('api_error', 'Internal server error') },
    { host: 'anthropic', status: 504, body: anthropicError('timeout_error', 'Request timed out') },
    { host: 'anthropic', status: 502, body: nginxPage('502 Bad Gateway') },
    {
      host: 'anthropic',
      status: 520,
      body: '<!DOCTYPE html><html lang="en-US"><head><title>api.anthropic.com | 520: Web server is returning an unknown error</title></head><body>Cloudflare</body></html>',
    },
    { host: 'anthropic', status: 524, body: 'error code: 524' },
    {
      host: 'anthropic',
      status: 200,
      body: 'event: error\ndata: {"type":"error","error":{"details":null,"type":"overloaded_error","message":"Overloaded"},"request_id":"req_x"}\n\n',
    },
    {
      host: 'anthropic',
      status: 200,
      body: 'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}}}\n\nevent: error\ndata: {"type":"error","error":{"type":"api_error","message":"Internal server error"}}\n\n',
    },
    {
      host: 'openai',
      status: 503,
      body: openaiError('The engine is currently overloaded, please try again later', { type: 'server_error' }),
    },
    { host: 'openai', status: 503, body: openaiError('Slow Down', { type: 'server_error', code: 'slow_down' }) },
    {
      host: 'openai',
      status: 500,
      body: openaiError('The server had an error while processing your request. Sorry about that!', {
        type: 'server_error',
      }),
    },
    {
      host: 'openai',
      status: 200,
      body: 'event: response.failed\ndata: {"type":"response.failed","sequence_number":3,"response":{"id":"resp_1","object":"response","created_at":1,"status":"failed","error":{"code":"server_is_overloaded","message":"Our servers are currently overloaded. Please try again later."},"incomplete_details":null,"output":[],"usage":null}}\n\n',
    },
    {
      host: 'openai',
      status: 200,
      body: 'event: response.failed\ndata: {"type":"response.failed","sequence_number":3,"response":{"id":"resp_1","object":"response","created_at":1,"status":"failed","error":{"code":"server_error","message":"The model produced invalid content."},"incomplete_details":null,"output":[],"usage":null}}\n\n',
    },
    {
      host: 'openai',
      status: 200,
      body: 'event: error\ndata: {"type":"error","error":{"type":"service_unavailable_error","code":"server_is_overloaded","headers":{"x-retry-metadata":"NO_MORE_RETRY"},"message":"Our servers are currently overloaded. Please try again later.","param":null},"sequence_number":2}\n\n',
    },
    {
      host: 'google',
      status: 503,
      body: googleError('UNAVAILABLE', 'The model is overloaded. Please try again later.'),
    },
    {
      host: 'google',
      status: 500,
      body: googleError(
        'INTERNAL',
        'An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting',
      ),
    },
    { host: 'google', status: 504, body: googleError('DEADLINE_EXCEEDED', 'The request timed out. Please try again.') },
    {
      host: 'google',
      status: 200,
      body: 'data: {"candidates":[{"content":{},"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"Malformed function call: print(default_api.read(","index":0}],"usageMetadata":{"promptTokenCount":9,"totalTokenCount":9}}\r\n\r\n',
    },
    {
      host: 'google',
      status: 200,
      body: 'data: {"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}\r\n\r\n',
    },
    {
      host: 'google',
      status: 200,
      body: 'data: {"candidates":[{"content":{"parts":[{"text":"Hel"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":9,"totalTokenCount":9}}\r\n\r\ndata: {"error":{"code":500,"message":"An internal error has occurred.","status":"INTERNAL"}}\r\n\r\n',
    },
    { host: 'google', status: 503, body: nginxPage('503 Service Temporarily Unavailable') },
    {
      host: 'groq',
      status: 400,
      body: {
        error: {
          message:
            "Tool call validation failed: tool call validation failed: parameters for tool read did not match schema: errors: [missing properties: 'path']",
          type: 'invalid_request_error',
          code: 'tool_use_failed',
          failed_generation: '{"name":"read","arguments":{}}',
        },
      },
    },
    {
      host: 'groq',
      status: 400,
      body: {
        error: {
          message: "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
          type: 'invalid_request_error',
          code: 'tool_use_failed',
          failed_generation: '<function=read>',
        },
      },
    },
    { host: 'groq', status: 503, body: openaiError('Service unavailable', { type: 'internal_server_error' }) },
    {
      host: 'openrouter',
      status: 502,
      body: {
        error: {
          message: 'Provider returned error',
          code: 502,
          metadata: { raw: 'error code: 502', provider_name: 'DeepInfra' },
        },
      },
    },
    {
      host: 'openrouter',
      status: 200,
      body: ': OPENROUTER PROCESSING\n\ndata: {"id":"gen-1","provider":"X","model":"m","object":"chat.completion.chunk","created":1,"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"error","native_finish_reason":"error"}],"error":{"code":502,"message":"Network connection lost.","metadata":{"provider_name":"X"}}}\n\ndata: [DONE]\n\n',
    },
    {
      host: 'ollama',
      status: 500,
      body: openaiError('error parsing tool call: raw=\'{"path": "a\' err=unexpected end of JSON input', {
        type: 'api_error',
      }),
    },
    {
      host: 'llamacpp',
      status: 503,
      body: { error: { code: 503, message: 'Loading model', type: 'unavailable_error' } },
    },
    {
      host: 'llamacpp',
      status: 500,
      body: {
        error: {
          code: 500,
          message: 'Failed to parse input at pos 27: <|channel|>commentary to=functions.read',
          type: 'server_error',
        },
      },
    },
    { host: 'nvidia', status: 500, body: { status: 500, title: 'Internal Server Error', detail: 'Inference error' } },
    { host: 'proxy', status: 502, body: nginxPage('502 Bad Gateway') },
    { host: 'proxy', status: 504, body: nginxPage('504 Gateway Time-out') },
    {
      host: 'proxy',
      status: 503,
      body: 'upstream connect error or disconnect/reset before headers. reset reason: connection failure',
      headers: { 'content-type': 'text/plain' },
    },
  ],
  network: [
    {
      host: 'anthropic',
      status: 200,
      body: '<!DOCTYPE html><html><head><title>Sign in to your network</title></head><body>Captive portal</body></html>',
      headers: { 'content-type': 'text/html' },
    },
    { host: 'anthropic', status: 200, body: '' },
    { host: 'google', status: 499, body: googleError('CANCELLED', 'The operation was cancelled.') },
    { host: 'openrouter', status: 408, body: { error: { message: 'Request timed out', code: 408 } } },
    { host: 'azure', status: 408, body: { error: { code: 'Timeout', message: 'The operation was timeout.' } } },
    { host: 'proxy', status: 200, body: '<html><body>Sign in</body></html>', headers: { 'content-type': 'text/html' } },
    { host: 'proxy', status: 200, body: '' },
    {
      host: 'proxy',
      status: 200,
      body: 'data: {"id":"x","choices":[{"index":0,"delta":{"content":"Hel"}}]}\n\ndata: {"id":"x","choices":[{"ind\n\n',
    },
  ],
  'context-overflow': [
    {
      host: 'anthropic',
      status: 429,
      body: anthropicError('rate_limit_error', 'Extra usage is required for long context requests.'),
    },
    {
      host: 'anthropic',
      status: 400,
      body: anthropicError('invalid_request_error', 'prompt is too long: 213462 tokens > 200000 maximum'),
    },
    {
      host: 'anthropic',
      status: 400,
      body: anthropicError(
        'invalid_request_error',
        'input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again',
      ),
    },
    { host: 'anthropic', status: 413, body: anthropicError('request_too_large', 'Request exceeds the maximum size') },
    { host: 'anthropic', status: 413, body: nginxPage('413 Request Entity Too Large') },
    {
      host: 'openai',
      status: 429,
      body: openaiError(
        'Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 342389. The input or output tokens must be reduced in order to run successfully.',
        { type: 'tokens', code: 'rate_limit_exceeded' },
      ),
    },
    {
      host: 'openai',
      status: 400,
      body: openaiError(
        'Your input exceeds the context window of this model. Please adjust your input and try again.',
        { type: 'invalid_request_error', code: 'context_length_exceeded', param: 'input' },
      ),
    },
    {
      host: 'openai',
      status: 400,
      body: openaiError(
        "Invalid 'input[4].output': string too long. Expected a string with maximum length 10485760, but got a string with length 12345678 instead.",
        { type: 'invalid_request_error', code: 'string_above_max_length', param: 'input[4].output' },
      ),
    },
    {
      host: 'openai',
      status: 200,
      body: 'event: response.failed\ndata: {"type":"response.failed","sequence_number":3,"response":{"id":"resp_1","object":"response","created_at":1,"status":"failed","error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model. Please adjust your input and try again."},"incomplete_details":null,"output":[],"usage":null}}\n\n',
    },
    {
      host: 'google',
      status: 400,
      body: googleError(
        'INVALID_ARGUMENT',
        'The input token count (1250074) exceeds the maximum number of tokens allowed (1048576).',
      ),
    },
    {
      host: 'google',
      status: 400,
      body: [
        {
          error: {
            code: 400,
            message: 'The input token count (1250074) exceeds the maximum number of tokens allowed (1048576).',
            status: 'INVALID_ARGUMENT',
          },
        },
      ],
    },
    {
      host: 'groq',
      status: 413,
      body: openaiError(
        'Request too large for model `openai/gpt-oss-20b` in organization `org_x` service tier `on_demand` on tokens per minute (TPM): Limit 8000, Requested 32979, please reduce your message size and try again. Need more tokens? Upgrade to Dev Tier today at https://console.groq.com/settings/billing',
        { type: 'tokens', code: 'rate_limit_exceeded' },
      ),
    },
    {
      host: 'groq',
      status: 400,
      body: openaiError('Please reduce the length of the messages or completion.', {
        type: 'invalid_request_error',
        code: 'context_length_exceeded',
        param: 'messages',
      }),
    },
    {
      host: 'openrouter',
      status: 400,
      body: {
        error: {
          message:
            "This endpoint's maximum context length is 200000 tokens. However, you requested about 2500021 tokens (2500021 of text input). Please reduce the length of either one, or use the context-compression plugin to compress your prompt automatically.",
          code: 400,
          metadata: { provider_name: null },
        },
      },
    },
    {
      host: 'openrouter',
      status: 400,
      body: {
        error: {
          message: 'Provider returned error',
          code: 400,
          metadata: {
            raw: '{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum","type":"invalid_request_error"}}',
            provider_name: 'Anthropic',
          },
        },
      },
    },
    {
      host: 'deepseek',
      status: 400,
      body: openaiError(
        "This model's maximum context length is 1048565 tokens. However, you requested 1250025 tokens (1250025 in the messages, 0 in the completion). Please reduce the length of the messages or completion.",
        { type: 'invalid_request_error', code: 'invalid_request_error' },
      ),
    },
    {
      host: 'mistral',
      status: 400,
      body: {
        object: 'error',
        message:
          'Prompt contains 140000 tokens and 0 draft tokens, too large for model with 131072 maximum context length',
        type: 'invalid_request_error',
        param: null,
        code: '3051',
      },
    },
    { host: 'zai', status: 400, body: { error: { code: '1261', message: 'Prompt exceeds max length' } } },
    {
      host: 'moonshotai',
      status: 400,
      body: {
        error: {
          message: 'Invalid request: Your request exceeded model token limit: 262144 (requested: 300000)',
          type: 'invalid_request_error',
        },
      },
    },
    {
      host: 'xai',
      status: 400,
      body: {
        code: 'Client specified an invalid argument',
        error: "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
      },
    },
    {
      host: 'cerebras',
      status: 400,
      body: {
        message:
          'Please reduce the length of the messages or completion. Current length is 140000 while limit is 131072',
        type: 'invalid_request_error',
        param: 'messages',
        code: 'context_length_exceeded',
      },
    },
    {
      host: 'ollama',
      status: 400,
      body: openaiError('prompt too long; exceeded max context length by 1119046 tokens (ref: x)', {
        type: 'invalid_request_error',
      }),
    },
    {
      host: 'lmstudio',
      status: 400,
      body: {
        error:
          'The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 13055>= n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter input.',
      },
    },
    {
      host: 'lmstudio',
      status: 400,
      body: {
        error:
          'Trying to keep the first 15857 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input',
      },
    },
    {
      host: 'lmstudio',
      status: 200,
      body: 'event: error\ndata: {"error":{"message":"The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length, or provide a shorter input"}}\n\n',
    },
    {
      host: 'lmstudio',
      status: 200,
      body: 'event: error\ndata: {"error":{"message":"Context size has been exceeded."}}\n\n',
    },
    {
      host: 'vllm',
      status: 400,
      body: {
        object: 'error',
        message:
          "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (3000 in the messages, 2000 in the completion). Please reduce the length of the messages or completion.",
        type: 'BadRequestError',
        param: null,
        code: 400,
      },
    },
    {
      host: 'vllm',
      status: 400,
      body: openaiError(
        "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 32768 tokens and your request has 2000 input tokens (32000 > 32768 - 2000). None",
        { type: 'BadRequestError', code: 400 },
      ),
    },
    {
      host: 'vllm',
      status: 400,
      body: openaiError(
        "You passed 40961 input tokens and requested 0 output tokens. However, the model's context length is only 40960 tokens, resulting in a maximum input length of 40960 tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=40961)",
        { type: 'BadRequestError', code: 400, param: 'input_tokens' },
      ),
    },
    {
      host: 'vllm',
      status: 400,
      body: openaiError(
        'The decoder prompt (length 51475) is longer than the maximum model length of 32768. Make sure that `max_model_len` is no smaller than the number of text tokens.',
        { type: 'BadRequestError', code: 400 },
      ),
    },
    {
      host: 'llamacpp',
      status: 400,
      body: {
        error: {
          code: 400,
          message: 'request (67311 tokens) exceeds the available context size (65536 tokens), try increasing it',
          type: 'exceed_context_size_error',
          n_prompt_tokens: 67311,
          n_ctx: 65536,
        },
      },
    },
    {
      host: 'llamacpp',
      status: 500,
      body: { error: { code: 500, message: 'Context size has been exceeded.', type: 'server_error' } },
    },
    {
      host: 'llamacpp',
      status: 200,
      body: 'data: {"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}\n\n',
    },
    {
      host: 'perplexity',
      status: 400,
      body: {
        error: { message: 'The total length of all messages is too long.', type: 'too_many_prompt_tokens', code: 400 },
      },
    },
    {
      host: 'together',
      status: 422,
      body: {
        id: 'x',
        error: {
          message:
            'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 131073. Given: 140000 `inputs` tokens and 0 `max_new_tokens`',
          type: 'invalid_request_error',
          param: 'max_tokens',
          code: null,
        },
      },
    },
    {
      host: 'fireworks',
      status: 400,
      body: {
        error: {
          object: 'error',
          type: 'invalid_request_error',
          code: 'invalid_request_error',
          message: 'The prompt is too long: 140000, model maximum context length: 131071',
        },
      },
    },
    {
      host: 'copilot',
      status: 400,
      body: {
        error: {
          message: 'prompt token count of 130000 exceeds the limit of 128000',
          code: 'model_max_prompt_tokens_exceeded',
        },
      },
    },
    {
      host: 'litellm',
      status: 400,
      body: openaiError(
        'litellm.ContextWindowExceededError: litellm.BadRequestError: AnthropicException - {"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}',
        { code: '400' },
      ),
    },
  ],
  auth: [
    {
      host: 'anthropic',
      status: 403,
      body: anthropicError(
        'permission_error',
        'Your account does not have access to Claude. Please contact your administrator.',
      ),
    },
    {
      host: 'anthropic',
      status: 401,
      body: anthropicError(
        'authentication_error',
        'OAuth token has expired. Please obtain a new token or refresh your existing token.',
      ),
    },
    {
      host: 'openai',
      status: 401,
      body: openaiError(
        'Incorrect API key provided: sk-xxx. You can find your API key at https://platform.openai.com/account/api-keys.',
        { type: 'invalid_request_error', code: 'invalid_api_key' },
      ),
    },
    {
      host: 'openai',
      status: 401,
      body: openaiError('You have insufficient permissions for this operation. Missing scopes: api.responses.write.', {
        type: 'invalid_request_error',
        code: 'missing_scope',
      }),
    },
    {
      host: 'google',
      status: 400,
      body: googleError('INVALID_ARGUMENT', 'API key not valid. Please pass a valid API key.', [
        { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID', domain: 'googleapis.com' },
      ]),
    },
    {
      host: 'google',
      status: 400,
      body: googleError('INVALID_ARGUMENT', 'API key expired. Please renew the API key.', [
        { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID', domain: 'googleapis.com' },
      ]),
    },
    {
      host: 'google',
      status: 403,
      body: googleError(
        'PERMISSION_DENIED',
        'Generative Language API has not been used in project 123 before or it is disabled.',
        [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'SERVICE_DISABLED' }],
      ),
    },
    {
      host: 'google',
      status: 403,
      body: googleError('PERMISSION_DENIED', 'Your API key was reported as leaked. Please use another API key.'),
    },
    { host: 'openrouter', status: 401, body: { error: { message: 'User not found.', code: 401 } } },
    { host: 'mistral', status: 401, body: { detail: 'Invalid API Key' } },
    {
      host: 'xai',
      status: 400,
      body: {
        code: 'invalid-argument',
        error: 'Incorrect API key provided: xx. You can obtain an API key from https://console.x.ai.',
      },
    },
    { host: 'ollama', status: 401, body: openaiError('Unauthorized', { type: 'api_error' }) },
    {
      host: 'azure',
      status: 401,
      body: { error: { code: '401', message: 'Access denied due to invalid subscription key or wrong API endpoint.' } },
    },
  ],
  quota: [
    {
      host: 'anthropic',
      status: 400,
      body: anthropicError(
        'invalid_request_error',
        'Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.',
      ),
    },
    {
      host: 'anthropic',
      status: 400,
      body: anthropicError(
        'invalid_request_error',
        'You have reached your specified API usage limits. You will regain access on 2026-09-01 at 00:00 UTC.',
      ),
    },
    {
      host: 'anthropic',
      status: 429,
      body: {
        type: 'error',
        error: { type: '1113', message: 'Insufficient balance or no resource package. Please recharge.' },
      },
    },
    {
      host: 'openai',
      status: 429,
      body: openaiError('You exceeded your current quota, please check your plan and billing details.', {
        type: 'insufficient_quota',
        code: 'insufficient_quota',
      }),
    },
    {
      host: 'openai',
      status: 429,
      body: openaiError('You have reached the weekly/monthly limit set for this project.', {
        type: 'billing_limit',
        code: 'billing_hard_limit_reached',
      }),
    },
    {
      host: 'openai',
      status: 400,
      body: openaiError('Billing hard limit has been reached', {
        type: 'invalid_request_error',
        code: 'billing_hard_limit_reached',
      }),
    },
    {
      host: 'openai',
      status: 429,
      body: {
        error: {
          type: 'usage_limit_reached',
          message: 'The usage limit has been reached',
          plan_type: 'plus',
          resets_at: 1787162400,
          resets_in_seconds: 5400,
        },
      },
    },
    {
      host: 'openai',
      status: 200,
      body: 'event: response.failed\ndata: {"type":"response.failed","sequence_number":3,"response":{"id":"resp_1","object":"response","created_at":1,"status":"failed","error":{"code":"insufficient_quota","message":"You exceeded your current quota, please check your plan and billing details."},"incomplete_details":null,"output":[],"usage":null}}\n\n',
    },
    {
      host: 'google',
      status: 429,
      body: googleError(
        'RESOURCE_EXHAUSTED',
        'You exceeded your current quota, please check your plan and billing details. * Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 20, model: gemini-2.5-flash Please retry in 42.5s.',
        [
          {
            '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
            violations: [{ quotaId: 'GenerateRequestsPerDayPerProjectPerModel-FreeTier', quotaValue: '20' }],
          },
          { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '42s' },
        ],
      ),
      waitMs: 42_000,
    },
    {
      host: 'google',
      status: 429,
      body: googleError(
        'RESOURCE_EXHAUSTED',
        'Your prepayment credits are depleted. Please go to AI Studio at https://ai.studio/projects to manage your project and billing.',
      ),
    },
    {
      host: 'openrouter',
      status: 402,
      body: {
        error: {
          message:
            'This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can only afford 3395. To increase, visit https://openrouter.ai/settings/credits and upgrade to a paid account',
          code: 402,
          metadata: { provider_name: null },
        },
        user_id: 'user_x',
      },
    },
    {
      host: 'openrouter',
      status: 402,
      body: {
        error: { message: 'Insufficient credits. Add more using https://openrouter.ai/settings/credits', code: 402 },
      },
    },
    {
      host: 'openrouter',
      status: 402,
      body: {
        error: {
          message:
            'Prompt tokens limit exceeded: 230799 > 91442. To increase, visit https://openrouter.ai/settings/keys and create a key with a higher monthly limit',
          code: 402,
        },
      },
    },
    {
      host: 'openrouter',
      status: 429,
      body: {
        error: {
          message:
            'Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day',
          code: 429,
          metadata: {
            headers: { 'X-RateLimit-Limit': '50', 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': '1787184000000' },
            provider_name: null,
          },
        },
      },
    },
    {
      host: 'openrouter',
      status: 403,
      body: {
        error: {
          message: 'Key limit exceeded (total limit). Manage it using https://openrouter.ai/settings/keys',
          code: 403,
        },
      },
    },
    {
      host: 'deepseek',
      status: 402,
      body: openaiError('Insufficient Balance', { type: 'unknown_error', code: 'invalid_request_error' }),
    },
    {
      host: 'zai',
      status: 429,
      body: { error: { code: '1113', message: 'Insufficient balance or no resource package. Please recharge.' } },
    },
    { host: 'zai', status: 429, body: { error: { code: '1113', message: '余额不足或无可用资源包,请充值。' } } },
    {
      host: 'zai',
      status: 429,
      body: {
        error: {
          code: '1308',
          message: 'Usage limit reached for 5 hour. Your limit will reset at 2026-09-01 03:12:54',
        },
      },
    },
    {
      host: 'moonshotai',
      status: 403,
      body: {
        error: {
          message:
            'Your account x is not active, organization y exceeded current quota, please check your plan and billing details',
          type: 'exceeded_current_quota_error',
        },
      },
    },
    {
      host: 'moonshotai',
      status: 429,
      body: {
        error: {
          message: 'Your account x<y> is suspended, please check your plan and billing details',
          type: 'exceeded_current_quota_error',
        },
      },
    },
    {
      host: 'xai',
      status: 403,
      body: {
        code: 'The caller does not have permission to execute the specified operation',
        error:
          "Your newly created team doesn't have any credits or licenses yet. You can purchase those on https://console.x.ai/team/x.",
      },
    },
    {
      host: 'xai',
      status: 429,
      body: {
        code: 'Some resource has been exhausted',
        error:
          'Your team x has either used all available credits or reached its monthly spending limit. To continue making API requests, please purchase more credits or raise your spending limit.',
      },
    },
    {
      host: 'cerebras',
      status: 402,
      body: { message: 'Payment required', type: 'payment_required_error', code: 'payment_required' },
    },
    {
      host: 'ollama',
      status: 429,
      body: openaiError(
        'you (x) have reached your weekly usage limit, upgrade for higher limits: https://ollama.com/upgrade',
        { type: 'api_error' },
      ),
    },
    {
      host: 'fireworks',
      status: 412,
      body: {
        error: {
          object: 'error',
          type: 'invalid_request_error',
          code: 'invalid_request_error',
          message:
            'Account x is suspended, possibly due to reaching the monthly spending limit or failure to pay past invoices. Please go to https://fireworks.ai/account/billing for more information.',
        },
      },
    },
    {
      host: 'huggingface',
      status: 402,
      body: {
        error:
          'You have depleted your monthly included credits. Purchase pre-paid credits to continue using Inference Providers with the same provider.',
      },
    },
    {
      host: 'copilot',
      status: 402,
      body: { error: { message: 'You have exceeded your premium request allowance', code: 'quota_exceeded' } },
    },
    {
      host: 'litellm',
      status: 400,
      body: openaiError('Budget has been exceeded! Current cost: 25.03, Max budget: 25.0', {
        type: 'budget_exceeded',
        code: '400',
      }),
    },
  ],
  refused: [
    {
      host: 'anthropic',
      status: 400,
      body: anthropicError('invalid_request_error', 'Output blocked by content filtering policy'),
    },
    {
      host: 'openai',
      status: 400,
      body: openaiError(
        'Invalid prompt: your prompt was flagged as potentially violating our usage policy. Please try again with a different prompt: https://platform.openai.com/docs/guides/reasoning#advice-on-prompting',
        { type: 'invalid_request_error', code: 'invalid_prompt' },
      ),
    },
    {
      host: 'openai',
      status: 200,
      body: 'event: response.failed\ndata: {"type":"response.failed","sequence_number":3,"response":{"id":"resp_1","object":"response","created_at":1,"status":"failed","error":{"code":"invalid_prompt","message":"Invalid prompt: we\'ve limited access to this content for safety reasons."},"incomplete_details":null,"output":[],"usage":null}}\n\n',
    },
    {
      host: 'openai',
      status: 400,
      body: {
        error: {
          message:
            "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry.",
          type: null,
          param: 'prompt',
          code: 'content_filter',
          status: 400,
          innererror: {
            code: 'ResponsibleAIPolicyViolation',
            content_filter_result: { jailbreak: { filtered: true, detected: true } },
          },
        },
      },
    },
    {
      host: 'google',
      status: 200,
      body: 'data: {"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":9,"totalTokenCount":9},"modelVersion":"gemini-2.5-flash"}\r\n\r\n',
    },
    {
      host: 'google',
      status: 200,
      body: 'data: {"candidates":[{"finishReason":"SAFETY","index":0,"safetyRatings":[{"category":"HARM_CATEGORY_DANGEROUS_CONTENT","probability":"HIGH","blocked":true}]}],"usageMetadata":{"promptTokenCount":9,"totalTokenCount":9}}\r\n\r\n',
    },
    {
      host: 'openrouter',
      status: 403,
      body: {
        error: {
          message:
            'openai/gpt-5 requires moderation on OpenRouter. Your input was flagged for "violence". No credits were charged.',
          code: 403,
          metadata: { reasons: ['violence'], flagged_input: '...', provider_name: 'OpenAI' },
        },
      },
    },
    {
      host: 'deepseek',
      status: 400,
      body: openaiError('Content Exists Risk', { type: 'invalid_request_error', code: 'invalid_request_error' }),
    },
    {
      host: 'zai',
      status: 400,
      body: {
        contentFilter: [{ level: 1, role: 'user' }],
        error: {
          code: '1301',
          message:
            'System detected potentially unsafe or sensitive content in input or generation. Please avoid using prompts that may generate sensitive content. Thank you for your cooperation.',
        },
      },
    },
    {
      host: 'moonshotai',
      status: 400,
      body: {
        error: { message: 'The request was rejected because it was considered high risk', type: 'content_filter' },
      },
    },
  ],
  'invalid-request': [
    {
      host: 'anthropic',
      status: 400,
      body: anthropicError('invalid_request_error', 'messages.1.content.0: Invalid `signature` in `thinking` block'),
    },
    {
      host: 'anthropic',
      status: 400,
      body: anthropicError(
        'invalid_request_error',
        'messages.3.content.1.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes',
      ),
    },
    {
      host: 'anthropic',
      status: 400,
      body: anthropicError(
        'invalid_request_error',
        'messages.9.content.80.image.source.base64.data: At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels',
      ),
    },
    {
      host: 'anthropic',
      status: 400,
      body: anthropicError('invalid_request_error', 'tools: Tool names must be unique.'),
    },
    { host: 'anthropic', status: 404, body: anthropicError('not_found_error', 'model: claude-sonet-4-5') },
    {
      host: 'openai',
      status: 400,
      body: openaiError(
        "Invalid 'input[2].call_id': string too long. Expected a string with maximum length 64, but got a string with length 83 instead.",
        { type: 'invalid_request_error', code: 'string_above_max_length', param: 'input[2].call_id' },
      ),
    },
    {
      host: 'openai',
      status: 400,
      body: openaiError(
        "Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64, but got a string with length 71 instead.",
        { type: 'invalid_request_error', code: 'string_above_max_length', param: 'prompt_cache_key' },
      ),
    },
    {
      host: 'openai',
      status: 400,
      body: openaiError(
        "Invalid 'tools[3].name': string too long. Expected a string with maximum length 64, but got a string with length 80 instead.",
        { type: 'invalid_request_error', code: 'string_above_max_length', param: 'tools[3].name' },
      ),
    },
    {
      host: 'openai',
      status: 400,
      body: openaiError("Item 'rs_68c4' of type 'reasoning' was provided without its required following item.", {
        type: 'invalid_request_error',
        param: 'input',
      }),
    },
    {
      host: 'google',
      status: 400,
      body: googleError(
        'INVALID_ARGUMENT',
        'Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly.',
      ),
    },
    {
      host: 'google',
      status: 400,
      body: googleError(
        'INVALID_ARGUMENT',
        'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.',
      ),
    },
    {
      host: 'openrouter',
      status: 404,
      body: {
        error: {
          message:
            'No endpoints found that support tool use. To learn more about provider routing, visit: https://openrouter.ai/docs/provider-routing',
          code: 404,
        },
      },
    },
    {
      host: 'deepseek',
      status: 400,
      body: openaiError('The `reasoning_content` in the thinking mode must be passed back to the API.', {
        type: 'invalid_request_error',
        code: 'invalid_request_error',
      }),
    },
    {
      host: 'mistral',
      status: 422,
      body: {
        object: 'error',
        message: {
          detail: [
            {
              type: 'extra_forbidden',
              loc: ['body', 'messages', 2, 'assistant', 'reasoning_content'],
              msg: 'Extra inputs are not permitted',
              input: 'x',
            },
          ],
        },
        type: 'invalid_request_error',
        param: null,
        code: null,
      },
    },
    {
      host: 'ollama',
      status: 404,
      body: openaiError('model "qwen3:32b" not found, try pulling it first', { type: 'api_error' }),
    },
    {
      host: 'ollama',
      status: 400,
      body: openaiError('registry.ollama.ai/library/gemma3:latest does not support tools', { type: 'api_error' }),
    },
    {
      host: 'lmstudio',
      status: 404,
      body: openaiError('No models loaded. Please load a model in the developer page or use the `lms load` command.', {
        type: 'invalid_request_error',
        code: 'model_not_found',
        param: 'model',
      }),
    },
    {
      host: 'vllm',
      status: 400,
      body: {
        object: 'error',
        message: '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        type: 'BadRequestError',
        param: null,
        code: 400,
      },
    },
    {
      host: 'azure',
      status: 404,
      body: { error: { code: 'DeploymentNotFound', message: 'The API deployment for this resource does not exist.' } },
    },
  ],
}

/** Bodies whose kind is open to doubt, with the reason. Any of `kinds` is accepted. */
const doubted: (FailureBody & { kinds: ModelErrorKind[]; reason: string })[] = [
  {
    host: 'llamacpp',
    status: 200,
    body: 'data: {"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":"Hel"}}],"created":1,"id":"x","model":"m","object":"chat.completion.chunk"}\n\nerror: {"code":500,"message":"Context size has been exceeded.","type":"server_error"}\n\n',
    kinds: ['network', 'context-overflow'],
    reason:
      'Only old llama.cpp builds send `error:` as a field of its own. SSE parsers ignore unknown fields, so the stream just ends.',
  },
  {
    host: 'groq',
    status: 498,
    body: openaiError('Flex tier capacity exceeded', { type: 'capacity_exceeded' }),
    kinds: ['overloaded'],
    reason: 'Groq documents the status only. The body is a guess.',
  },
  {
    host: 'deepseek',
    status: 503,
    body: openaiError(
      'Service is too busy. We advise users to temporarily switch to alternative LLM API service providers.',
      { type: 'service_unavailable_error', code: 'service_unavailable_error' },
    ),
    kinds: ['overloaded'],
    reason: 'DeepSeek documents the status only. The body is a guess.',
  },
  {
    host: 'openai',
    status: 200,
    body: 'event: error\ndata: {"type":"error","code":"ERR_SOMETHING","message":"Something went wrong","param":null,"sequence_number":1}\n\n',
    kinds: ['overloaded', 'network', 'unknown'],
    reason: 'An example of the documentation. This code has not been observed.',
  },
  {
    host: 'lmstudio',
    status: 400,
    body: { error: 'The model has crashed without additional information. (Exit code: 18446744072635812000)' },
    kinds: ['invalid-request', 'overloaded'],
    reason: 'The crash may repeat with every attempt or be over after a reload. The status decides.',
  },
  {
    host: 'ollama',
    status: 500,
    body: openaiError('model requires more system memory (12.0 GiB) than is available (8.0 GiB)', {
      type: 'api_error',
    }),
    kinds: ['overloaded', 'invalid-request'],
    reason: 'Memory may be free again at the next attempt. The status decides.',
  },
  {
    host: 'cerebras',
    status: 429,
    body: {
      message: 'Tokens per day limit exceeded - too many tokens processed.',
      type: 'too_many_tokens_error',
      param: 'quota',
      code: 'token_quota_exceeded',
    },
    kinds: ['rate-limited', 'quota'],
    reason: 'The body does not say when the day is over. Retries end soon either way.',
  },
  {
    host: 'google',
    status: 400,
    body: googleError('FAILED_PRECONDITION', 'User location is not supported for the API use.'),
    kinds: ['invalid-request', 'auth'],
    reason: 'Neither the request nor the key is wrong. Both kinds end the run.',
  },
  {
    host: 'openai',
    status: 400,
    body: openaiError(
      'Your organization must be verified to stream this model. Please go to: https://platform.openai.com/settings/organization/general and click on Verify Organization.',
      { type: 'invalid_request_error', code: 'unsupported_value', param: 'stream' },
    ),
    kinds: ['invalid-request', 'auth'],
    reason: 'Neither the request nor the key is wrong. Both kinds end the run.',
  },
  {
    host: 'openai',
    status: 400,
    body: openaiError(
      'Your organization must be verified to generate reasoning summaries. Please go to: https://platform.openai.com/settings/organization/general and click on Verify Organization.',
      { type: 'invalid_request_error', code: 'unsupported_value', param: 'reasoning.summary' },
    ),
    kinds: ['invalid-request', 'auth'],
    reason: 'Neither the request nor the key is wrong. Both kinds end the run.',
  },
  {
    host: 'openai',
    status: 404,
    body: openaiError('Your organization must be verified to use the model `o3`.', {
      type: 'invalid_request_error',
      code: 'model_not_found',
    }),
    kinds: ['invalid-request', 'auth'],
    reason: 'Neither the request nor the key is wrong. Both kinds end the run.',
  },
  {
    host: 'anthropic',
    status: 400,
    body: anthropicError('invalid_request_error', 'This organization has been disabled.'),
    kinds: ['invalid-request', 'auth', 'quota'],
    reason: 'The reason is not given. All of these kinds end the run.',
  },
  {
    host: 'openai',
    status: 403,
    body: openaiError('Country, region, or territory not supported', {
      type: 'request_forbidden',
      code: 'unsupported_country_region_territory',
    }),
    kinds: ['auth', 'invalid-request'],
    reason: 'Neither the request nor the key is wrong. Both kinds end the run.',
  },
  {
    host: 'openrouter',
    status: 404,
    body: {
      error: {
        message:
          'No endpoints available matching your guardrail restrictions and data policy. Configure: https://openrouter.ai/settings/privacy',
        code: 404,
      },
    },
    kinds: ['invalid-request', 'auth'],
    reason: 'A setting of the account forbids every provider of the model. Both kinds end the run.',
  },
  {
    host: 'moonshotai',
    status: 429,
    body: {
      error: { message: 'The engine is currently overloaded, please try again later', type: 'engine_overloaded_error' },
    },
    kinds: ['rate-limited', 'overloaded'],
    reason: 'Moonshot sends an overload with the status of a rate limit. Both kinds are retried.',
  },
  {
    host: 'cerebras',
    status: 429,
    body: {
      message: "We're experiencing high traffic right now! Please try again soon.",
      type: 'too_many_requests_error',
      param: 'queue',
      code: 'queue_exceeded',
    },
    kinds: ['rate-limited', 'overloaded'],
    reason: 'Cerebras sends high traffic with the status of a rate limit. Both kinds are retried.',
  },
  {
    host: 'mistral',
    status: 429,
    body: {
      object: 'error',
      message: 'Service tier capacity exceeded for this model.',
      type: 'service_tier_capacity_exceeded',
      param: null,
      code: '3505',
    },
    kinds: ['rate-limited', 'overloaded'],
    reason: 'Mistral sends a lack of capacity with the status of a rate limit. Both kinds are retried.',
  },
  {
    host: 'groq',
    status: 429,
    body: openaiError(
      'Rate limit reached for model `openai/gpt-oss-120b` in organization `org_x` service tier `on_demand` on tokens per day (TPD): Limit 200000, Used 199000, Requested 4000. Please try again in 21m36s. Need more tokens? Upgrade to Dev Tier today at https://console.groq.com/settings/billing',
      { type: 'tokens', code: 'rate_limit_exceeded' },
    ),
    waitMs: 1296000,
    kinds: ['rate-limited', 'quota'],
    reason: 'The day passes, and the body says when. Retries give up because the wait is long.',
  },
  {
    host: 'proxy',
    status: 403,
    body: '<!DOCTYPE html><html><head><title>Just a moment...</title></head><body>Enable JavaScript and cookies to continue</body></html>',
    kinds: ['auth', 'network', 'invalid-request', 'overloaded'],
    reason: 'A challenge of Cloudflare looks like a rejected key.',
  },
  {
    host: 'proxy',
    status: 407,
    body: nginxPage('407 Proxy Authentication Required'),
    kinds: ['invalid-request', 'auth', 'network'],
    reason: 'The proxy wants a password, not the provider. All of these kinds name the proxy page.',
  },
  {
    host: 'openrouter',
    status: 200,
    body: {
      error: { message: 'Provider returned error', code: 502, metadata: { provider_name: 'X' } },
      user_id: 'user_x',
    },
    headers: { 'content-type': 'application/json' },
    kinds: ['network', 'overloaded'],
    reason: 'A status of 200 with an error as JSON. Both kinds are retried.',
  },
  {
    host: 'proxy',
    status: 200,
    body: 'data: [DONE]\n\n',
    kinds: ['network', 'overloaded'],
    reason: 'A stream with nothing but its end. Both kinds are retried.',
  },
]

let server: Server
let sent: FailureBody
beforeAll(async () => {
  server = createServer((request, response) => {
    request.resume()
    request.on('end', () => {
      const { status, body, headers } = sent
      const isStream = status === 200 && typeof body === 'string'
      const contentType = isStream ? 'text/event-stream' : 'application/json'
      response.writeHead(status, { 'content-type': contentType, ...headers })
      response.end(typeof body === 'string' ? body : JSON.stringify(body))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterAll(() => {
  server.close()
  server.closeAllConnections()
})

describe.each(Object.entries(failures))('a failure of the kind %s', (kind, bodies) => {
  test.each(bodies.map((each) => [each.host, each.status, titleOf(each), each] as const))(
    '%s %i: %s',
    async (_host, _status, _title, failure) => {
      const error = await errorFrom(failure)
      expect(error, error.message).toMatchObject({ kind, retryAfterMs: failure.waitMs })
    },
  )
})

describe('a failure that can be read in several ways', () => {
  test.each(doubted.map((each) => [each.host, each.status, titleOf(each), each] as const))(
    '%s %i: %s',
    async (_host, _status, _title, failure) => {
      expect(failure.kinds).toContain((await errorFrom(failure)).kind)
    },
  )
})

async function errorFrom(failure: FailureBody): Promise<ModelError> {
  sent = failure
  const call = modelOf(failure.host).prepare({
    system: 'Be brief.',
    tools: [],
    messages: [{ role: 'user', content: [{ type: 'text', text: { content: 'Hello.' } }] }],
    thinkingLevel: 'off',
  })
  try {
    for await (const _ of call.stream(new AbortController().signal)) continue
  } catch (error) {
    if (error instanceof ModelError) return error
    throw error
  }
  throw new Error('The call did not fail.')
}

function modelOf(host: string): Model {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const clock = new FakeClock(Date.parse('2097-12-31T00:00:00Z'))
  const connection = { apiKey: 'test-key', baseUrl: `${url}/v1`, clock }
  switch (host) {
    case 'anthropic':
      return anthropic({ ...connection, model: 'claude-opus-5' })
    case 'openai':
      return openai({ ...connection, model: 'gpt-5.5' })
    case 'google':
      return google({ ...connection, model: 'gemini-3.1-pro-preview' })
    default:
      return openaiCompatible({ ...connection, name: host, model: 'any' })
  }
}

/** The message of the body, short enough for a title. */
function titleOf({ body }: FailureBody): string {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const message = /"(?:message|error|detail)": ?"((?:[^"\\]|\\.)+)"/.exec(text)?.[1] ?? text
  return message.replace(/\s+/g, ' ').replaceAll('%', '%%').slice(0, 80)
}

function anthropicError(type: string, message: string): unknown {
  return { type: 'error', error: { type, message }, request_id: 'req_1' }
}

function openaiError(
  message: string,
  { type, code = null, param = null }: Record<string, string | number | null>,
): unknown {
  return { error: { message, type, param, code } }
}

function googleError(status: string, message: string, details?: unknown[]): unknown {
  const codes: Record<string, number> = {
    CANCELLED: 499,
    DEADLINE_EXCEEDED: 504,
    FAILED_PRECONDITION: 400,
    INTERNAL: 500,
    INVALID_ARGUMENT: 400,
    PERMISSION_DENIED: 403,
    RESOURCE_EXHAUSTED: 429,
    UNAVAILABLE: 503,
  }
  return { error: { code: codes[status], message, status, ...(details && { details }) } }
}

function nginxPage(title: string): string {
  return `<html>\r\n<head><title>${title}</title></head>\r\n<body><center><h1>${title}</h1></center></body>\r\n</html>\r\n`
}
