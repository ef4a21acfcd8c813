import type { ThinkingLevel } from '../model.ts'
import type { ModelPrices } from '../model-prices.ts'

/** What is known of a model before a request. */
export interface ModelInfo {
  /** The provider name in messages; for a bare URL, the URL. */
  provider: string
  id: string
  /** Display name. */
  name: string
  /** Tokens of input and output together. */
  contextWindow: number
  maxOutputTokens: number
  /** The supported thinking levels, lowest first; empty if the model decides itself. */
  thinkingLevels: readonly ThinkingLevel[]
  images: boolean
  /** The current prices; absent if they are unknown. */
  prices?: ModelPrices
  /** The environment variable to set; absent if no key is needed. */
  keyVariable?: string
  source: ModelOrigin
}

export type ModelOrigin = 'catalogue' | 'user' | 'local' | 'url'

export interface ListedModel extends ModelInfo {
  key: KeyState
}

/** `origin` describes where the key comes from, for display; never the key. */
export type KeyState =
  | { type: 'found'; origin: string }
  | { type: 'missing'; variable: string }
  | { type: 'not-needed' }

/** The reference that `find` accepts. */
export function referenceOf({ provider, id }: { provider: string; id: string }): string {
  return isUrl(provider) ? `${provider}#${id}` : `${provider}/${id}`
}

export function isUrl(text: string): boolean {
  return /^https?:\/\//i.test(text)
}

export interface CycleOutcome {
  /** Undefined if there is no other model. */
  next: ListedModel | undefined
  /** Models that were skipped because their key is missing. */
  skipped: ListedModel[]
  /** Names the skipped models, and the variables to set. */
  note: string | undefined
}

/** The next or previous model, with wrap-around; from a model outside of the list, the first or the last one. */
export function cycleModels(
  models: readonly ListedModel[],
  current: { provider: string; id: string } | undefined,
  direction: 'forward' | 'backward' = 'forward',
): CycleOutcome {
  const ordered = direction === 'forward' ? models : models.toReversed()
  const place = ordered.findIndex(({ provider, id }) => provider === current?.provider && id === current.id)
  const others = [...ordered.slice(place + 1), ...ordered.slice(0, Math.max(place, 0))]
  const index = others.findIndex(({ key }) => key.type !== 'missing')
  const skipped = index === -1 ? others : others.slice(0, index)
  return { next: others[index], skipped, note: noteOn(skipped) }
}

function noteOn(skipped: readonly ListedModel[]): string | undefined {
  if (skipped.length === 0) return undefined
  const variables = [...new Set(skipped.flatMap(({ key }) => (key.type === 'missing' ? [key.variable] : [])))]
  const names = skipped.slice(0, 3).map(referenceOf)
  const rest = skipped.length > names.length ? ` and ${skipped.length - names.length} more` : ''
  return `Skipped ${names.join(', ')}${rest}: ${variables.join(', ')} ${variables.length === 1 ? 'is' : 'are'} not set.`
}

export type RegistryErrorCode =
  | 'unknown-model'
  | 'ambiguous-model'
  | 'unknown-provider'
  | 'invalid-reference'
  | 'invalid-provider'
  | 'missing-key'
  | 'missing-package'
  | 'no-local-server'

/** Why no model can be opened. The message says what to do. */
export class RegistryError extends Error {
  override readonly name = 'RegistryError'
  readonly code: RegistryErrorCode
  /** References that may have been meant. */
  readonly suggestions: readonly string[]

  constructor(
    code: RegistryErrorCode,
    message: string,
    options: { suggestions?: readonly string[]; cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause })
    this.code = code
    this.suggestions = options.suggestions ?? []
  }
}
