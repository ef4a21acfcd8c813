const minLength = 8

/** For each id the shortest beginning that none of the others has. Ids begin with the time, so eight characters may be shared. */
export function shortIds(ids: readonly string[]): Map<string, string> {
  const sorted = [...new Set(ids)].sort()
  return new Map(
    sorted.map((id, index) => {
      const shared = Math.max(sharedLength(id, sorted[index - 1]), sharedLength(id, sorted[index + 1]))
      return [id, id.slice(0, Math.max(minLength, shared + 1))]
    }),
  )
}

function sharedLength(left: string, right: string | undefined): number {
  if (right === undefined || left === right) return 0
  let length = 0
  while (length < left.length && left[length] === right[length]) length++
  return length
}
