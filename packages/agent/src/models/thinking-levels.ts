import type { LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { thinkingLevels, type ThinkingLevel } from './model.ts'

/** How much a model is told to think; undefined leaves it to the model. */
export type Reasoning = LanguageModelV4CallOptions['reasoning']

export function reasoningOf(level: ThinkingLevel): Reasoning {
  return level === 'off' ? 'none' : level
}

/** The level itself if it is accepted, else the next lower one, else the next higher one. */
export function nearestLevel(level: ThinkingLevel, accepted: readonly ThinkingLevel[]): ThinkingLevel | undefined {
  const place = thinkingLevels.indexOf(level)
  const lower = thinkingLevels.slice(0, place + 1).findLast((each) => accepted.includes(each))
  return lower ?? thinkingLevels.slice(place).find((each) => accepted.includes(each))
}
