import { knownModels } from './known-models.ts'
import type { ModelLimits } from './model.ts'

/**
 * The limits of a model by the prefix of its name: a fallback if no limits are given, without guarantee. An unknown
 * name gets limits that are small enough for most.
 */
export function knownLimits(modelId: string): ModelLimits {
  const name = modelId.slice(modelId.lastIndexOf('/') + 1).toLowerCase()
  const [known] = beginnings
    .filter(({ start }) => name.startsWith(start))
    .sort((left, right) => right.start.length - left.start.length)
  return known ? { ...known.limits } : { contextTokens: 128_000, outputTokens: 16_384 }
}

interface Beginning {
  start: string
  limits: ModelLimits
}

/** Hosts of models from other vendors, which may offer lower limits than the vendor. */
const hosts = new Set(['groq', 'cerebras', 'openrouter'])

/**
 * Models that are not listed, by the prefixes of their names. The limits are at most the published ones: a request with
 * more output than the model has, or with an image that it does not support, is rejected. `false`: no images.
 */
const families: readonly (readonly [start: string, contextTokens: number, outputTokens: number, images?: false])[] = [
  ['claude-2', 100_000, 4096, false],
  ['claude-3', 200_000, 4096],
  ['claude-3-5', 200_000, 8192],
  ['claude-3-7', 200_000, 64_000],
  ['claude-opus-4', 200_000, 32_000],
  ['claude-sonnet-4', 200_000, 64_000],
  ['claude-haiku-5', 1_000_000, 128_000],
  ['gpt-3.5', 16_385, 4096, false],
  ['gpt-4', 8192, 4096, false],
  ['gpt-4-0125', 128_000, 4096, false],
  ['gpt-4-1106', 128_000, 4096, false],
  ['gpt-4-turbo', 128_000, 4096],
  ['gpt-4.5', 128_000, 16_384],
  ['gpt-4o', 128_000, 16_384],
  ['gpt-5.3', 128_000, 16_384],
  ['gpt-5-chat', 128_000, 16_384],
  ['gpt-6', 1_050_000, 128_000],
  ['gpt-oss', 131_072, 65_536, false],
  ['o1', 200_000, 100_000],
  ['o1-mini', 128_000, 65_536, false],
  ['o1-preview', 128_000, 32_768, false],
  ['gemini-1.5', 1_000_000, 8192],
  ['gemini-2.0', 1_000_000, 8192],
  ['gemini-1.0', 32_768, 2048, false],
  ['gemini-pro', 32_768, 2048, false],
  ['gemini-2.5', 1_048_576, 65_536],
  ['gemini-3', 1_048_576, 65_536],
  ['gemini-4', 1_048_576, 32_768],
  ['gemma-2', 8192, 4096, false],
  ['gemma-3', 128_000, 8192],
  ['gemma3', 128_000, 8192],
  ['gemma-4', 262_144, 32_768],
  ['deepseek', 64_000, 8192, false],
  ['deepseek-v3.', 128_000, 8192, false],
  ['deepseek-v4', 1_000_000, 384_000, false],
  ['codestral', 128_000, 16_384, false],
  ['devstral', 262_144, 65_536, false],
  ['magistral', 40_000, 16_384, false],
  ['ministral', 128_000, 16_384, false],
  ['mistral-nemo', 128_000, 16_384, false],
  ['open-mistral', 32_000, 8192, false],
  ['open-mixtral', 32_000, 8192, false],
  ['mistral-large', 128_000, 32_768],
  ['mistral-medium', 128_000, 32_768],
  ['grok-2', 32_768, 8192, false],
  ['grok-2-vision', 8192, 4096],
  ['grok-3', 131_072, 16_384, false],
  ['grok-4', 500_000, 65_536],
  ['grok-4-0709', 256_000, 65_536],
  ['grok-code', 256_000, 16_384, false],
  ['kimi-k2', 131_072, 32_768, false],
  ['kimi-k2-0905', 262_144, 65_536, false],
  ['kimi-k2-thinking', 262_144, 65_536, false],
  ['kimi-k2-turbo', 262_144, 65_536, false],
  ['kimi-k2.', 262_144, 65_536],
  ['kimi-k3', 1_048_576, 131_072],
  ['moonshot-v1-8k', 8192, 4096, false],
  ['moonshot-v1-32k', 32_768, 8192, false],
  ['glm-4', 204_800, 131_072, false],
  ['glm-4.5v', 65_536, 16_384],
  ['glm-5', 200_000, 131_072, false],
  ['llama-3', 128_000, 8192, false],
  ['llama-3-8b', 8192, 4096, false],
  ['llama-3-70b', 8192, 4096, false],
  ['llama-3.2-11b-vision', 128_000, 8192],
  ['llama-3.2-90b-vision', 128_000, 8192],
  ['llama-3.3', 131_072, 32_768, false],
  ['llama-4', 128_000, 8192],
  ['llama3', 128_000, 8192, false],
  ['llama3.2-vision', 128_000, 8192],
  ['qwen', 32_768, 8192, false],
  ['qwen2.5', 32_768, 8192, false],
  ['qwen2.5vl', 128_000, 8192],
  ['qwen2.5-vl', 32_768, 8192],
  ['qwen3', 40_960, 16_384, false],
  ['qwen3-coder', 262_144, 65_536, false],
  ['qwen3-vl', 128_000, 16_384],
  ['qwen3.', 262_144, 65_536],
  ['minimax-m', 204_800, 65_536, false],
  ['sonar', 127_000, 8000],
  ['phi-4', 16_384, 4096, false],
  ['command-r', 128_000, 4096, false],
  ['command-a', 256_000, 8192, false],
  ['nova-micro', 128_000, 5120, false],
  ['nova-lite', 300_000, 5120],
  ['nova-pro', 300_000, 5120],
]

const beginnings: readonly Beginning[] = [
  ...families.map(([start, contextTokens, outputTokens, images]) => ({
    start,
    limits: limitsOf({ contextTokens, outputTokens, hasImages: images ?? true }),
  })),
  ...knownModels
    .filter(({ provider }) => !hosts.has(provider))
    .map((model) => ({ start: model.id.toLowerCase(), limits: limitsOf(model) })),
]

function limitsOf({ contextTokens, outputTokens, hasImages }: Required<ModelLimits>): ModelLimits {
  return { contextTokens, outputTokens, ...(!hasImages && { hasImages }) }
}
