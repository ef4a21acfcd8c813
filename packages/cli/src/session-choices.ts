import type { Choice } from '@tapetree/client'

export type PermissionMode = NonNullable<Choice['mode']>
export type ThinkingLevel = NonNullable<Choice['thinkingLevel']>

/** What the agent may do without asking. The protocol has no others: one that is missing here does not compile. */
export const modeMeanings: Readonly<Record<PermissionMode, string>> = {
  ask: 'what only reads passes, the rest is asked',
  'accept-edits': 'writing files in the folder passes too',
  plan: 'only reads, until you accept a plan',
  auto: 'everything passes that no rule forbids',
}

export const permissionModes = Object.keys(modeMeanings) as readonly PermissionMode[]

const levels: Readonly<Record<ThinkingLevel, true>> = {
  off: true,
  minimal: true,
  low: true,
  medium: true,
  high: true,
  xhigh: true,
  max: true,
}

/** How long a model thinks before it answers; each model has some of them. */
export const thinkingLevels = Object.keys(levels) as readonly ThinkingLevel[]
