/** The known name that was probably meant: about a third of its letters may differ. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const wanted = name.toLowerCase().slice(0, 64)
  const distances = known.map((each) => ({ each, distance: editDistance(wanted, each.toLowerCase()) }))
  const best = distances.sort((left, right) => left.distance - right.distance)[0]
  return best && best.distance <= Math.ceil(best.each.length / 3) ? best.each : undefined
}

function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (const [index, letter] of [...from].entries()) {
    const next = [index + 1]
    for (const [place, other] of [...to].entries()) {
      const replaced = (row[place] ?? 0) + (letter === other ? 0 : 1)
      next.push(Math.min(replaced, (row[place + 1] ?? 0) + 1, (next[place] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}
