import { editDistance } from '@tapetree/agent/util/edit-distance'

/** The known word that was probably meant, if one is close enough. */
export function nearestWord(typed: string, known: readonly string[]): string | undefined {
  const lower = typed.toLowerCase()
  const [best] = known
    .map((word) => ({ word, distance: editDistance(lower, word.toLowerCase()) }))
    .filter(({ word, distance }) => distance <= allowedMistakes(Math.max(lower.length, word.length)))
    .sort((a, b) => a.distance - b.distance)
  return best?.word
}

/** As a sentence to append to another, or an empty string. */
export function didYouMean(typed: string, known: readonly string[]): string {
  const nearest = nearestWord(typed, known)
  return nearest === undefined ? '' : ` Did you mean ${nearest}?`
}

function allowedMistakes(length: number): number {
  if (length <= 3) return 1
  return length <= 7 ? 2 : 3
}
