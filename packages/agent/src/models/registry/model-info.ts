import type { ThinkingLevel } from '../model.ts'
import type { ModelPrices } from '../model-prices.ts'

/** What is known of a model before anything is sent to it. */
export interface ModelInfo {
  /** The name that messages carry; for a bare URL, the URL. */
  provider: string
  id: string
  /** For people. */
  name: string
  /** Tokens of input and output together. */
  contextWindow: number
  maxOutputTokens: number
  /** What it can be told, the least first; none where it decides for itself. */
  thinkingLevels: readonly ThinkingLevel[]
  images: boolean
  /** Today's; absent where nothing is known of the cost. */
  prices?: ModelPrices
  /** The environment variable to set; absent where no key is needed. */
  keyVariable?: string
  source: ModelSource
}

type ModelSource = 'catalogue' | 'user' | 'local' | 'url'

export interface ListedModel extends ModelInfo {
  key: KeyState
}

/** `origin` says where the key is from, in words to show: never the key. */
export type KeyState =
  | { type: 'found'; origin: string }
  | { type: 'missing'; variable: string }
  | { type: 'not-needed' }

/** As `find` understands it. */
export function referenceOf({ provider, id }: { provider: string; id: string }): string {
  return isUrl(provider) ? `${provider}#${id}` : `${provider}/${id}`
}

export function isUrl(text: string): boolean {
  return /^https?:\/\//i.test(text)
}

export interface CycleOutcome {
  /** Undefined where there is no other model to go to. */
  next: ListedModel | undefined
  /** Passed over on the way, for want of a key. */
  skipped: ListedModel[]
  /** Says what was passed over, and what to set. */
  note: string | undefined
}

/** The model after or before the current one, in a circle; from one that is not in the list, the first or the last. */
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
  return `Passed over ${names.join(', ')}${rest}: ${variables.join(', ')} ${variables.length === 1 ? 'is' : 'are'} not set.`
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

/** Why there is no model to be had. The message says what to do about it. */
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
