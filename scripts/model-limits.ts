// Writes packages/agent/src/models/known-models.ts: what providers say of their models, from the data that the package pi-ai
// (MIT) publishes. Run by hand when there are new models: `node scripts/model-limits.ts`, then read the difference.
// Prices are written only where those of genai-prices, which are asked at run time, are missing or older.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { hosts } from '../packages/agent/src/models/hosts.ts'
import { catalogueProviders, loadPublishedPrices } from '../packages/agent/src/models/registry/catalogue.ts'

const source = '@earendil-works/pi-ai@1.5.0'
const target = 'packages/agent/src/models/known-models.ts'

interface ProviderChoice {
  id: string
  /** The ids to take; all that are no special case if absent. */
  only: RegExp | undefined
  /** Where the thinking level is said as `reasoning_effort`, only what can be said so counts. */
  isCompatible: boolean
}

const only: Readonly<Record<string, RegExp>> = {
  mistral: /^(?:devstral|mistral|codestral|magistral).*-(?:latest|3\.5|4)$/,
  openrouter:
    /^(?:anthropic\/claude-(?:fable-5\.1|(?:opus|sonnet|haiku)-5\.5)|openai\/gpt-6\.?\d?-(?:sol|terra|luna|astra)|google\/gemini-(?:3\.8-flash|4-argon)|deepseek\/deepseek-v4(?:\.1-flash|-pro)|qwen\/qwen3(?:-coder|-coder-next|\.8-flash)|moonshotai\/kimi-k3(?:\.1-pro)?|z-ai\/glm-5\.3(?:-flash)?|x-ai\/grok-4\.7|meta\/muse-spark-1\.3|minimax\/minimax-m3\.1-flash|mistralai\/mistral-large-4-0)$/,
}

const providers: ProviderChoice[] = hosts
  .filter(({ defaultModel }) => defaultModel !== undefined)
  .map(({ id, api }) => ({ id, only: only[id], isCompatible: api === 'openai-compatible' }))

/** Snapshots of a day are found by the name they begin with; the others are no models for a coding agent. */
const specialCases =
  /-\d{8}$|-\d{4}-\d{2}-\d{2}$|deep-research|computer-use|robotics|customtools|cyber|daybreak|safeguard|chat|^o1|^gpt-4(?:-turbo)?$|preview-\d/
const smallestWindow = 64_000
/**
 * No provider charges this many times more for output than for input. For OpenRouter, pi-ai 1.5.0 has 0.192 and 15 for Kimi K3, 0.08 and
 * 3.6 for GLM-5.3. genai-prices, and pi-ai itself for the makers of these models, have 3 and 15, 1.4 and 4.4.
 */
const mistakenRatio = 20

interface PublishedModel {
  id: string
  name: string
  type?: string
  input: string[]
  reasoning: boolean
  contextWindow: number
  maxTokens: number
  cost: PublishedPrices & { tiers?: (PublishedPrices & { inputTokensAbove: number })[] }
  thinkingLevelMap?: Record<string, string | null>
  compat?: { supportsReasoningEffort?: boolean; thinkingFormat?: string }
}

interface PublishedPrices {
  input: number
  output: number
  cacheRead: number
  cacheWrite: number
}

const published = await loadPublishedPrices()
const folder = mkdtempSync(join(tmpdir(), 'model-limits-'))
try {
  execFileSync('npm', ['pack', source, '--silent', '--pack-destination', folder])
  execFileSync('sh', ['-c', 'tar xzf *.tgz'], { cwd: folder })
  const routed = new Map(modelsOf('openrouter').map((model) => [model.id, model]))
  const rows = providers.flatMap((provider) =>
    modelsOf(provider.id)
      .filter(({ id }) => (provider.only ? provider.only.test(id) : !specialCases.test(id)))
      .filter(({ contextWindow }) => contextWindow >= smallestWindow)
      .map((model) => rowOf(model, provider, routed)),
  )
  writeFileSync(target, fileOf(rows))
  execFileSync('npx', ['oxfmt', target])
  console.log(`${rows.length} models of ${providers.length} providers in ${target}`)
} finally {
  rmSync(folder, { recursive: true })
}

function modelsOf(provider: string): PublishedModel[] {
  const text = readFileSync(join(folder, 'package/dist/providers/data', `${provider}.json`), 'utf8')
  const byApi = JSON.parse(text) as Record<string, Record<string, PublishedModel>>
  return Object.values(byApi)
    .flatMap((models) => Object.values(models))
    .filter(({ type = 'chat' }) => type === 'chat')
}

function rowOf(model: PublishedModel, provider: ProviderChoice, routed: Map<string, PublishedModel>): object {
  const { id, name, maxTokens, input } = model
  const contextTokens = windowOf(model, routed.get(`${provider.id}/${id}`))
  return {
    provider: provider.id,
    id,
    name: name.replace(/ \(latest\)$/, ''),
    contextTokens,
    outputTokens: Math.min(maxTokens, contextTokens),
    hasImages: input.includes('image'),
    thinking: thinkingOf(model, provider),
    ...newerPrices(model, provider),
  }
}

/** The data ends some windows where a higher price begins; the window itself is larger. */
function windowOf({ contextWindow, cost }: PublishedModel, routed: PublishedModel | undefined): number {
  const endsAtPrice = cost.tiers?.some(({ inputTokensAbove }) => inputTokensAbove === contextWindow) ?? false
  return endsAtPrice && routed ? Math.max(contextWindow, routed.contextWindow) : contextWindow
}

function thinkingOf(model: PublishedModel, { id, isCompatible }: ProviderChoice): string[] {
  const { reasoning, thinkingLevelMap: map = {}, compat } = model
  if (!reasoning) return ['off']
  if (isCompatible && compat?.supportsReasoningEffort === false) return []
  const levels = ['off', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'].filter((level) => {
    const value = map[level]
    if (value === null) return false
    if (value === undefined) {
      if (level === 'off') return !isCompatible || id === 'openrouter'
      return level !== 'xhigh' && level !== 'max'
    }
    return !isCompatible || value === (level === 'off' ? 'none' : level)
  })
  // `off` alone is said of models that do not think.
  return levels.length === 1 && levels[0] === 'off' ? [] : levels
}

function newerPrices({ id, cost }: PublishedModel, { id: providerId }: ProviderChoice): { prices?: object } {
  const provider = catalogueProviders.find((each) => each.id === providerId)
  if (!provider || (cost.input === 0 && cost.output === 0)) return {}
  const known = Array.from({ length: 24 }, (_, hour) =>
    published.pricesOf(provider, id, new Date(Date.now() + hour * 3_600_000)),
  )
  // Of prices that depend on the time of day this data holds only one.
  const dependsOnTime = new Set(known.map((prices) => JSON.stringify(prices))).size > 1
  const [now] = known
  const isAsKnown =
    now?.input === cost.input &&
    now.output === cost.output &&
    (cost.cacheRead === 0 || (now.cacheRead ?? now.input) === cost.cacheRead)
  const isMistaken = cost.output > mistakenRatio * cost.input
  if (dependsOnTime || isAsKnown || isMistaken) return {}
  const tiers = cost.tiers?.map(({ inputTokensAbove, ...prices }) => ({ inputTokensAbove, ...pricesOf(prices) }))
  return { prices: { ...pricesOf(cost), ...(tiers && { tiers }) } }
}

/** Zero means that there is no price of its own. */
function pricesOf({ input, output, cacheRead, cacheWrite }: PublishedPrices): object {
  return { input, output, ...(cacheRead > 0 && { cacheRead }), ...(cacheWrite > 0 && { cacheWrite }) }
}

function fileOf(rows: object[]): string {
  return `import type { ThinkingLevel } from './model.ts'
import type { ModelPrices } from './model-prices.ts'

/** The facts that a provider publishes about its model. */
export interface KnownModel {
  provider: string
  id: string
  name: string
  contextTokens: number
  outputTokens: number
  hasImages: boolean
  /** The supported thinking levels; empty if the model decides itself. */
  thinking: readonly ThinkingLevel[]
  /** If the prices of genai-prices are missing or older. */
  prices?: ModelPrices
}

/** Written by scripts/model-limits.ts from ${source} (MIT); not to be edited. */
export const knownModels: readonly KnownModel[] = ${JSON.stringify(rows, null, 2)}
`
}
