/** Goes level by level, so that any depth is safe. */
export function isDeeperThan(depth: number, value: unknown): boolean {
  let level = [value]
  for (let reached = 0; reached <= depth; reached += 1) {
    level = level.flatMap((each) => (typeof each === 'object' && each !== null ? Object.values(each) : []))
    if (level.length === 0) return false
  }
  return true
}
