/** How many letters have to be added, left out or changed. */
export function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (const [index, letter] of [...from].entries()) {
    const next = [index + 1]
    for (const [place, other] of [...to].entries()) {
      const changed = (row[place] ?? 0) + (letter === other ? 0 : 1)
      next.push(Math.min(changed, (row[place + 1] ?? 0) + 1, (next[place] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}
