/** The provider package for the host. */
export const providerApis = ['openai-compatible', 'openai', 'anthropic', 'google'] as const
export type ProviderApi = (typeof providerApis)[number]

/**
 * The facts about one provider or compatible host. Registry, settings, key check, adapter, fake provider and docs read
 * this table, so that a new provider is one row here (and its models in `known-models.ts`).
 */
export interface Host {
  id: string
  name: string
  api: ProviderApi
  /** Without a trailing slash. For local servers, the default address. */
  baseUrl: string
  /** The first is the one to set; the others are read too. Empty if the host needs no key. */
  keyVariables: readonly string[]
  /** The path below the base URL for a key check. Default: `/models`. */
  keyCheckPath?: string
  /** Its id in genai-prices, if it is listed there. */
  pricesId?: string
  /** The model of a new session. Hosts without one are not in the catalogue: the user configures their models. */
  defaultModel?: string
  /** It runs on this machine, where the registry looks for it on this port. */
  localPort?: number
  /** How an assistant message returns its reasoning. */
  reasoning: ReturnedReasoning
  /**
   * The models whose assistant messages with calls must have the reasoning member, if only as an empty string. The
   * others accept it, so the agent sends it to every model of the host.
   */
  needsReasoning?: RegExp
  /** A user message must not follow tool results directly. */
  needsAnswerAfterResults?: true
  /** Models of this host write their reasoning into the text, between `<think>` tags. */
  hasThinkTags?: true
  /** The call ids that it accepts, if it does not accept every string. */
  callIds?: RegExp
  /** Whether `completion_tokens` includes reasoning tokens: `inside`, or `beside` if they are counted on top. */
  reasoningTokens?: 'inside' | 'beside'
  /** The member of the usage for tokens read from a cache, for the docs. */
  cachedTokens?: string
  /** The member of the usage for the cost of the request. */
  cost?: ReportedCost
  /** Members of a request or message that it rejects with 400 or 422. We send none of them. */
  refuses?: readonly string[]
  /** The output limit of a request without one, if the host counts the limit itself against a quota. */
  defaultOutputTokens?: number
  /** It silently drops input that does not fit, and reports more input tokens than the window has. */
  cutsSilently?: true
  /** How it reports errors, if not like OpenAI. */
  errors?: Partial<Record<HostErrorKind, HostError>>
}

export type HostErrorKind = 'rate-limited' | 'overloaded' | 'context-overflow' | 'quota'

export interface HostError {
  status: number
  body: Readonly<Record<string, unknown>>
}

/**
 * `blocks`: the provider package sends native blocks or items with their signatures. `thinking-parts`: parts of the
 * content. `none`: reasoning is not sent back. The others are members of the message.
 */
export type ReturnedReasoning =
  | 'blocks'
  | 'reasoning_content'
  | 'reasoning'
  | 'reasoning_details'
  | 'thinking-parts'
  | 'none'

/** A member of `usage`; `usage.cost_in_usd_ticks` is in ten-billionths of a US dollar, the others in US dollars. */
export type ReportedCost = 'usage.cost' | 'usage.cost.total_cost' | 'usage.cost_in_usd_ticks'

const chatCompletions = { api: 'openai-compatible', cachedTokens: 'prompt_tokens_details.cached_tokens' } as const

function failure(status: number, body: HostError['body']): HostError {
  return { status, body }
}

function onThisMachine(
  port: number,
): typeof chatCompletions & Pick<Host, 'baseUrl' | 'keyVariables'> & { localPort: number } {
  return { ...chatCompletions, baseUrl: `http://127.0.0.1:${port}/v1`, keyVariables: [], localPort: port }
}

/**
 * The default models are chosen by hand: the current generation, good at coding with tools, at a medium price. Review
 * them when `known-models.ts` is regenerated.
 */
const table = [
  {
    id: 'anthropic',
    name: 'Anthropic',
    api: 'anthropic',
    baseUrl: 'https://api.anthropic.com/v1',
    keyVariables: ['ANTHROPIC_API_KEY'],
    pricesId: 'anthropic',
    defaultModel: 'claude-sonnet-5-5',
    reasoning: 'blocks',
    callIds: /^[a-zA-Z0-9_-]{1,64}$/,
    reasoningTokens: 'inside',
    cachedTokens: 'cache_read_input_tokens',
  },
  {
    id: 'openai',
    name: 'OpenAI',
    api: 'openai',
    baseUrl: 'https://api.openai.com/v1',
    keyVariables: ['OPENAI_API_KEY'],
    pricesId: 'openai',
    defaultModel: 'gpt-6.1-sol',
    reasoning: 'blocks',
    callIds: /^[^]{1,64}$/,
    reasoningTokens: 'inside',
    cachedTokens: 'input_tokens_details.cached_tokens',
  },
  {
    id: 'google',
    name: 'Google',
    api: 'google',
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
    keyVariables: ['GEMINI_API_KEY', 'GOOGLE_GENERATIVE_AI_API_KEY'],
    pricesId: 'google',
    defaultModel: 'gemini-4-argon',
    reasoning: 'blocks',
    reasoningTokens: 'beside',
    cachedTokens: 'cachedContentTokenCount',
  },
  {
    ...chatCompletions,
    id: 'xai',
    name: 'xAI',
    baseUrl: 'https://api.x.ai/v1',
    keyVariables: ['XAI_API_KEY'],
    pricesId: 'x-ai',
    defaultModel: 'grok-4.7',
    reasoning: 'reasoning_content',
    reasoningTokens: 'beside',
    cost: 'usage.cost_in_usd_ticks',
    refuses: ['presence_penalty', 'frequency_penalty', 'stop'],
    errors: {
      'rate-limited': failure(429, {
        code: 'Some resource has been exhausted',
        error:
          'Too many requests for team x and model y. Your team rate limit is: Requests per Minute (actual/limit): 61/60.',
      }),
      quota: failure(429, {
        code: 'Some resource has been exhausted',
        error: 'Your team x has either used all available credits or reached its monthly spending limit.',
      }),
      'context-overflow': failure(400, {
        code: 'Client specified an invalid argument',
        error: "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
      }),
    },
  },
  {
    ...chatCompletions,
    id: 'deepseek',
    name: 'DeepSeek',
    baseUrl: 'https://api.deepseek.com/v1',
    keyVariables: ['DEEPSEEK_API_KEY'],
    pricesId: 'deepseek',
    defaultModel: 'deepseek-v4-pro',
    reasoning: 'reasoning_content',
    needsReasoning: /deepseek-(?:v[4-9]|reasoner)/,
    reasoningTokens: 'inside',
    cachedTokens: 'prompt_cache_hit_tokens',
    errors: {
      quota: failure(402, {
        error: { message: 'Insufficient Balance', type: 'unknown_error', param: null, code: 'invalid_request_error' },
      }),
    },
  },
  {
    ...chatCompletions,
    id: 'mistral',
    name: 'Mistral',
    baseUrl: 'https://api.mistral.ai/v1',
    keyVariables: ['MISTRAL_API_KEY'],
    pricesId: 'mistral',
    defaultModel: 'mistral-large-4',
    reasoning: 'thinking-parts',
    needsAnswerAfterResults: true,
    callIds: /^[a-zA-Z0-9]{9}$/,
    refuses: ['reasoning_content', 'reasoning', 'reasoning_details', 'max_completion_tokens', 'seed', 'user'],
    errors: {
      'rate-limited': failure(429, { message: 'Requests rate limit exceeded' }),
      overloaded: failure(503, {
        object: 'error',
        message: 'Service unavailable.',
        type: 'internal_server_error',
        param: null,
        code: '1000',
      }),
      'context-overflow': failure(400, {
        object: 'error',
        message:
          'Prompt contains 140000 tokens and 0 draft tokens, too large for model with 131072 maximum context length',
        type: 'invalid_request_error',
        param: null,
        code: '3051',
      }),
    },
  },
  {
    ...chatCompletions,
    id: 'moonshotai',
    name: 'Moonshot AI',
    baseUrl: 'https://api.moonshot.ai/v1',
    keyVariables: ['MOONSHOT_API_KEY'],
    pricesId: 'moonshotai',
    defaultModel: 'kimi-k3.1-pro',
    reasoning: 'reasoning_content',
    needsReasoning: /kimi-(?:thinking|k2-thinking|k2\.[5-9]|k[3-9])/,
    reasoningTokens: 'inside',
    cachedTokens: 'cached_tokens',
    errors: {
      'rate-limited': failure(429, {
        error: {
          message: 'Your account x<y> request reached max request: 3, please try again after 1 seconds',
          type: 'rate_limit_reached_error',
        },
      }),
      quota: failure(429, {
        error: {
          message: 'Your account x<y> is suspended, please check your plan and billing details',
          type: 'exceeded_current_quota_error',
        },
      }),
      'context-overflow': failure(400, {
        error: {
          message: 'Invalid request: Your request exceeded model token limit: 262144 (requested: 300000)',
          type: 'invalid_request_error',
        },
      }),
    },
  },
  {
    ...chatCompletions,
    id: 'zai',
    name: 'Z.ai',
    baseUrl: 'https://api.z.ai/api/paas/v4',
    keyVariables: ['ZAI_API_KEY'],
    pricesId: 'zai',
    defaultModel: 'glm-5.3',
    reasoning: 'reasoning_content',
    reasoningTokens: 'inside',
    cutsSilently: true,
    errors: {
      'rate-limited': failure(429, { error: { code: '1305', message: 'The API has triggered a rate limit.' } }),
      quota: failure(429, {
        error: { code: '1113', message: 'Insufficient balance or no resource package. Please recharge.' },
      }),
      'context-overflow': failure(400, { error: { code: '1261', message: 'Prompt exceeds max length' } }),
    },
  },
  {
    ...chatCompletions,
    id: 'groq',
    name: 'Groq',
    baseUrl: 'https://api.groq.com/openai/v1',
    keyVariables: ['GROQ_API_KEY'],
    pricesId: 'groq',
    defaultModel: 'qwen/qwen3.8-27b',
    reasoning: 'reasoning',
    reasoningTokens: 'inside',
    refuses: ['reasoning_content'],
    defaultOutputTokens: 8192,
    errors: {
      'rate-limited': failure(429, {
        error: {
          message:
            'Rate limit reached for model `m` in organization `org_x` service tier `on_demand` on tokens per minute (TPM): Limit 6000, ' +
            'Used 5034, Requested 1443. Please try again in 4.77s. Need more tokens? Upgrade to Dev Tier today at ' +
            'https://console.groq.com/settings/billing',
          type: 'tokens',
          code: 'rate_limit_exceeded',
        },
      }),
      'context-overflow': failure(400, {
        error: {
          message: 'Please reduce the length of the messages or completion.',
          type: 'invalid_request_error',
          param: 'messages',
          code: 'context_length_exceeded',
        },
      }),
    },
  },
  {
    ...chatCompletions,
    id: 'cerebras',
    name: 'Cerebras',
    baseUrl: 'https://api.cerebras.ai/v1',
    keyVariables: ['CEREBRAS_API_KEY'],
    pricesId: 'cerebras',
    defaultModel: 'qwen-3.8-27b',
    reasoning: 'reasoning',
    reasoningTokens: 'inside',
    refuses: ['reasoning_content'],
    errors: {
      'rate-limited': failure(429, {
        message: 'Tokens per minute limit exceeded - too many tokens processed.',
        type: 'too_many_tokens_error',
        param: 'quota',
        code: 'token_quota_exceeded',
      }),
      quota: failure(402, { message: 'Payment required', type: 'payment_required_error', code: 'payment_required' }),
      'context-overflow': failure(400, {
        message:
          'Please reduce the length of the messages or completion. Current length is 140000 while limit is 131072',
        type: 'invalid_request_error',
        param: 'messages',
        code: 'context_length_exceeded',
      }),
    },
  },
  {
    ...chatCompletions,
    id: 'openrouter',
    name: 'OpenRouter',
    baseUrl: 'https://openrouter.ai/api/v1',
    keyVariables: ['OPENROUTER_API_KEY'],
    pricesId: 'openrouter',
    defaultModel: 'anthropic/claude-sonnet-5.5',
    // The list of models is public.
    keyCheckPath: '/key',
    reasoning: 'reasoning_details',
    reasoningTokens: 'inside',
    cost: 'usage.cost',
    errors: {
      quota: failure(402, {
        error: { message: 'Insufficient credits. Add more using https://openrouter.ai/settings/credits', code: 402 },
      }),
      'rate-limited': failure(429, {
        error: {
          message: 'Provider returned error',
          code: 429,
          metadata: { raw: 'm:free is temporarily rate-limited upstream. Please retry shortly.', provider_name: 'X' },
        },
      }),
      overloaded: failure(502, {
        error: { message: 'Provider returned error', code: 502, metadata: { raw: 'error code: 502' } },
      }),
    },
  },
  {
    ...chatCompletions,
    id: 'together',
    name: 'Together AI',
    baseUrl: 'https://api.together.xyz/v1',
    keyVariables: ['TOGETHER_API_KEY'],
    pricesId: 'together',
    reasoning: 'reasoning',
    hasThinkTags: true,
    errors: {
      'context-overflow': failure(422, {
        error: {
          message:
            'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 131073. Given: 140000 `inputs` tokens and 0 ' +
            '`max_new_tokens`',
          type: 'invalid_request_error',
          param: 'max_tokens',
          code: null,
        },
      }),
    },
  },
  {
    ...chatCompletions,
    id: 'fireworks',
    name: 'Fireworks',
    baseUrl: 'https://api.fireworks.ai/inference/v1',
    keyVariables: ['FIREWORKS_API_KEY'],
    pricesId: 'fireworks',
    reasoning: 'reasoning_content',
    errors: {
      quota: failure(412, {
        error: {
          object: 'error',
          type: 'invalid_request_error',
          code: 'invalid_request_error',
          message:
            'Account x is suspended, possibly due to reaching the monthly spending limit or failure to pay past invoices.',
        },
      }),
    },
  },
  {
    ...chatCompletions,
    id: 'perplexity',
    name: 'Perplexity',
    baseUrl: 'https://api.perplexity.ai',
    keyVariables: ['PERPLEXITY_API_KEY'],
    pricesId: 'perplexity',
    reasoning: 'none',
    hasThinkTags: true,
    cost: 'usage.cost.total_cost',
    refuses: ['tools'],
    errors: {
      'context-overflow': failure(400, {
        error: { message: 'The total length of all messages is too long.', type: 'too_many_prompt_tokens', code: 400 },
      }),
    },
  },
  {
    ...onThisMachine(11434),
    id: 'ollama',
    name: 'Ollama',
    reasoning: 'reasoning',
    hasThinkTags: true,
    errors: {
      'context-overflow': failure(400, {
        error: {
          message: 'prompt too long; exceeded max context length by 1119046 tokens',
          type: 'invalid_request_error',
          param: null,
          code: null,
        },
      }),
    },
  },
  {
    ...onThisMachine(1234),
    id: 'lmstudio',
    name: 'LM Studio',
    reasoning: 'reasoning_content',
    hasThinkTags: true,
    errors: {
      'context-overflow': failure(400, {
        error:
          'The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 13055>= n_ctx: 4096). Try to ' +
          'load the model with a larger context length, or provide a shorter input.',
      }),
    },
  },
  {
    ...onThisMachine(8080),
    id: 'llamacpp',
    name: 'llama.cpp',
    reasoning: 'reasoning_content',
    hasThinkTags: true,
    errors: {
      overloaded: failure(503, { error: { code: 503, message: 'Loading model', type: 'unavailable_error' } }),
      'context-overflow': failure(400, {
        error: {
          code: 400,
          message: 'request (67311 tokens) exceeds the available context size (65536 tokens), try increasing it',
          type: 'exceed_context_size_error',
        },
      }),
    },
  },
  {
    ...chatCompletions,
    id: 'vllm',
    name: 'vLLM',
    baseUrl: 'http://127.0.0.1:8000/v1',
    keyVariables: [],
    reasoning: 'reasoning',
    hasThinkTags: true,
  },
] as const satisfies readonly Host[]

/** The hosts with the Chat Completions format. */
export type ChatHostId = Extract<(typeof table)[number], { api: 'openai-compatible' }>['id']

export const hosts: readonly Host[] = table

/** Finds a host by its id, or by its URL: the user may give it another name. */
export function hostOf({ id, baseUrl = '' }: { id: string; baseUrl?: string }): Host | undefined {
  const byId = hosts.find((host) => host.id === id)
  if (byId) return byId
  const name = URL.canParse(baseUrl) ? new URL(baseUrl).hostname : ''
  // Every local server has the same host name.
  return hosts.find((host) => host.baseUrl.startsWith('https:') && new URL(host.baseUrl).hostname === name)
}
