/** How much a model takes, in as few letters as a list has room for: `900`, `128k`, `1M`. */
export function tokenText(count: number): string {
  if (count < 1000) return String(count)
  const thousands = Math.round(count / 1000)
  return thousands < 1000 ? `${thousands}k` : `${Math.round(thousands / 100) / 10}M`
}
