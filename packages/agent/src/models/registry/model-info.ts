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
