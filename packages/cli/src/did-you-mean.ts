/** The known word that was probably meant, if one is near enough. */
export function nearestWord(typed: string, known: readonly string[]): string | undefined {
  const lower = typed.toLowerCase()
  const [best] = known
    .map((word) => ({ word, distance: distanceOf(lower, word.toLowerCase()) }))
    .filter(({ word, distance }) => distance <= allowedMistakes(Math.max(lower.length, word.length)))
    .sort((a, b) => a.distance - b.distance)
  return best?.word
}

/** As a sentence to put behind another, or nothing. */
export function didYouMean(typed: string, known: readonly string[]): string {
  const nearest = nearestWord(typed, known)
  return nearest === undefined ? '' : ` Did you mean ${nearest}?`
}

function allowedMistakes(length: number): number {
  if (length <= 3) return 1
  return length <= 7 ? 2 : 3
}

/** Letters to insert, drop, change or swap with their neighbour. */
function distanceOf(from: string, to: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (let row = 1; row <= from.length; row++) {
    const current = [row]
    for (let column = 1; column <= to.length; column++) {
      const isSame = from[row - 1] === to[column - 1]
      let least = Math.min(
        (current[column - 1] ?? 0) + 1,
        (last[column] ?? 0) + 1,
        (last[column - 1] ?? 0) + (isSame ? 0 : 1),
      )
      const isSwap = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
      if (isSwap) least = Math.min(least, (beforeLast[column - 2] ?? 0) + 1)
      current.push(least)
    }
    ;[beforeLast, last] = [last, current]
  }
  return last.at(-1) ?? 0
}
