/** How many letters have to be added, left out, changed or swapped with their neighbor to make one word of the other. */
export function editDistance(from: string, to: string): number {
  const [source, target] = [Array.from(from), Array.from(to)]
  let beforeLast: number[] = []
  let last = Array.from({ length: target.length + 1 }, (_, index) => index)
  for (const [row, letter] of source.entries()) {
    const current = [row + 1]
    for (const [column, other] of target.entries()) {
      const changed = (last[column] ?? 0) + (letter === other ? 0 : 1)
      const isSwap = row > 0 && column > 0 && letter === target[column - 1] && source[row - 1] === other
      const swapped = isSwap ? (beforeLast[column - 1] ?? 0) + 1 : Infinity
      current.push(Math.min(changed, swapped, (last[column + 1] ?? 0) + 1, (current[column] ?? 0) + 1))
    }
    ;[beforeLast, last] = [last, current]
  }
  return last.at(-1) ?? 0
}
