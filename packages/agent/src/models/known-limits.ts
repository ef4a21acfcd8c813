import { knownModels } from './known-models.ts'
import type { ModelLimits } from './model.ts'

/**
 * What is said of a model, known by how its name begins: a fallback for whoever gives no limits, and no promise. A name that
 * begins like none of them gets limits that are small enough for most.
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

/** Those who only host a model may offer less of it than its maker. */
const hosts = new Set(['groq', 'cerebras', 'openrouter'])

/** Of models that are not listed, but whose relatives are known. */
const families: readonly (readonly [start: string, contextTokens: number, outputTokens: number, images?: false])[] = [
  ['claude-opus-4', 200_000, 32_000],
  ['claude-sonnet-4', 200_000, 64_000],
  ['claude-haiku-5', 1_000_000, 128_000],
  ['gpt-5-chat', 128_000, 16_384],
  ['gpt-6', 1_050_000, 128_000],
  ['gpt-oss', 131_072, 65_536, false],
  ['gemini-2.5', 1_048_576, 65_536],
  ['gemini-3', 1_048_576, 65_536],
  ['gemini-4', 1_048_576, 32_768],
  ['gemma-4', 262_144, 32_768],
  ['deepseek-v4', 1_000_000, 384_000, false],
  ['devstral', 262_144, 65_536, false],
  ['mistral-large', 262_144, 65_536],
  ['mistral-medium', 262_144, 65_536],
  ['grok-4', 500_000, 65_536],
  ['kimi-k2', 262_144, 65_536],
  ['kimi-k3', 1_048_576, 131_072],
  ['glm-4', 204_800, 131_072, false],
  ['glm-5', 200_000, 131_072, false],
  ['llama-3.3', 131_072, 32_768, false],
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
