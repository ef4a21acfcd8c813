import { describe, expect, test } from 'vitest'
import { classifyError } from './classify-error.ts'
import { overflowPatterns, saysOverflow } from './overflow-patterns.ts'

/** What each of them is known to answer. */
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

describe('the words for a context that is too long', () => {
  test.each(said)('%s (%i): %s', (_, status, text) => {
    expect(classifyError({ status, codes: [], text, isTransport: false })).toBe('context-overflow')
  })

  test.each(notOverflow)('not these of %s (%i): %s', (_, status, text) => {
    expect(classifyError({ status, codes: [], text, isTransport: false })).not.toBe('context-overflow')
  })

  test('every pattern has something that is known to be said, by whom it names', () => {
    const unproven = overflowPatterns.filter(
      ({ from, pattern }) => !said.some(([by, , words]) => by === from && pattern.test(words)),
    )
    expect(unproven).toEqual([])
  })

  test('nothing is said by an empty body', () => {
    expect(saysOverflow('')).toBe(false)
  })
})
