/**
 * How many characters must be added, removed, changed or swapped with their neighbor to turn one word into the other.
 */
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

/** The known name that was probably meant: about a third of its letters may differ. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const wanted = name.toLowerCase().slice(0, 64)
  const distances = known.map((each) => ({ each, distance: editDistance(wanted, each.toLowerCase()) }))
  const best = distances.sort((left, right) => left.distance - right.distance)[0]
  return best && best.distance <= Math.ceil(best.each.length / 3) ? best.each : undefined
}

/** Similarity to this text, from 0 to 1: the share of common letter pairs, ignoring case. */
export function similarityTo(text: string): (other: string) => number {
  const wanted = pairsOf(text)
  const counts = new Map<number, number>()
  for (const pair of wanted) counts.set(pair, (counts.get(pair) ?? 0) + 1)
  return (other) => {
    const pairs = pairsOf(other)
    if (pairs.length + wanted.length === 0) return text.toLowerCase() === other.toLowerCase() ? 1 : 0
    const seen = new Map<number, number>()
    let shared = 0
    for (const pair of pairs) {
      const available = counts.get(pair)
      if (available === undefined) continue
      const used = seen.get(pair) ?? 0
      if (used === available) continue
      seen.set(pair, used + 1)
      shared += 1
    }
    return (2 * shared) / (pairs.length + wanted.length)
  }
}

const maxLength = 500

/** Each pair as one number. */
function pairsOf(text: string): number[] {
  const letters = text.slice(0, maxLength).normalize('NFC').toLowerCase()
  const pairs: number[] = []
  for (let at = 1; at < letters.length; at += 1)
    pairs.push(letters.charCodeAt(at - 1) * 0x10000 + letters.charCodeAt(at))
  return pairs
}
