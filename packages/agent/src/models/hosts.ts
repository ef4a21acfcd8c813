/** Which provider package speaks to the host. */
export type ProviderApi = 'anthropic' | 'openai' | 'google' | 'openai-compatible'

/**
 * What is known of one provider or compatible host. Registry, settings, key check, adapter and docs read this table, so that a new
 * provider is one row here (and its models in `known-models.ts`).
 */
export interface Host {
  id: string
  name: string
  api: ProviderApi
  /** Without a trailing slash. For servers of this machine, the address they listen on by default. */
  baseUrl: string
  /** The first is the one to set; the others are read as well. Empty if the host needs no key. */
  keyVariables: readonly string[]
  /** What to request, below the base URL, to find out whether a key is accepted: `/models` if absent. */
  keyCheckPath?: string
  /** Its id in genai-prices, if it is listed there. */
  pricesId?: string
  /** The model of a new session. Hosts without one are not in the catalogue: the user configures their models. */
  defaultModel?: string
  /** It runs on this machine, where the registry looks for it on this port. */
  localPort?: number
  /** How an assistant message takes its reasoning back. */
  reasoning: ReturnedReasoning
  /** Assistant messages with calls must have the reasoning member, if only as an empty string. */
  needsReasoning?: true
  /** A user message must not follow tool results directly. */
  needsAnswerAfterResults?: true
  /** Models of this host write their reasoning into the text, between `<think>` tags. */
  hasThinkTags?: true
  /** The call ids that it accepts, if it does not accept every string. */
  callIds?: RegExp
  /** Whether `completion_tokens` includes reasoning tokens: `inside`, or `beside` if they are counted on top. */
  reasoningTokens?: 'inside' | 'beside'
  /** Where usage counts tokens read from a cache, for people who read the docs. */
  cachedTokens?: string
  /** Where usage tells the cost of the request. */
  cost?: ReportedCost
  /** Members of a request or message that it refuses with 400 or 422. We send none of them. */
  refuses?: readonly string[]
  /** The answer limit of a request that names none, if the host counts the limit itself against a quota. */
  defaultOutputTokens?: number
  /** It drops input that does not fit without saying so, and reports more input tokens than the window has. */
  cutsSilently?: true
}

/**
 * `blocks`: the provider package sends native blocks or items with their signatures. `thinking-parts`: parts of the content.
 * `none`: reasoning is not sent back. The others are members of the message.
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

function onThisMachine(port: number): Pick<Host, 'api' | 'baseUrl' | 'keyVariables' | 'localPort'> {
  return { ...chatCompletions, baseUrl: `http://127.0.0.1:${port}/v1`, keyVariables: [], localPort: port }
}

/**
 * The default models are chosen by hand: the current generation, good at coding with tools, at a middle price. Review them when
 * `known-models.ts` is regenerated.
 */
export const hosts: readonly Host[] = [
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
    needsReasoning: true,
    reasoningTokens: 'inside',
    cachedTokens: 'prompt_cache_hit_tokens',
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
    refuses: ['reasoning_content', 'max_completion_tokens', 'seed', 'user'],
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
    needsReasoning: true,
    reasoningTokens: 'inside',
    cachedTokens: 'cached_tokens',
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
  },
  {
    ...chatCompletions,
    id: 'fireworks',
    name: 'Fireworks',
    baseUrl: 'https://api.fireworks.ai/inference/v1',
    keyVariables: ['FIREWORKS_API_KEY'],
    pricesId: 'fireworks',
    reasoning: 'reasoning_content',
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
  },
  { ...onThisMachine(11434), id: 'ollama', name: 'Ollama', reasoning: 'reasoning', hasThinkTags: true },
  { ...onThisMachine(1234), id: 'lmstudio', name: 'LM Studio', reasoning: 'reasoning_content', hasThinkTags: true },
  { ...onThisMachine(8080), id: 'llamacpp', name: 'llama.cpp', reasoning: 'reasoning_content', hasThinkTags: true },
  {
    ...chatCompletions,
    id: 'vllm',
    name: 'vLLM',
    baseUrl: 'http://127.0.0.1:8000/v1',
    keyVariables: [],
    reasoning: 'reasoning',
    hasThinkTags: true,
  },
]

/** By its id, or by the address: a host is the same host under a name that the user gave it. */
export function hostOf({ id, baseUrl = '' }: { id: string; baseUrl?: string }): Host | undefined {
  const byId = hosts.find((host) => host.id === id)
  if (byId) return byId
  const name = URL.canParse(baseUrl) ? new URL(baseUrl).hostname : ''
  // Every local server has the same host name.
  return hosts.find((host) => host.baseUrl.startsWith('https:') && new URL(host.baseUrl).hostname === name)
}
