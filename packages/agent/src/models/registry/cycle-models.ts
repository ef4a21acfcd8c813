import { referenceOf, type ListedModel } from './model-info.ts'

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
