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
