const minute = 60
const hour = 60 * minute
const day = 24 * hour

/** How long ago, in one short word: `now`, `5m`, `3h`, `12d`, `2y`. `now` is in milliseconds since the epoch. */
export function ageOf(time: string, now: number): string {
  const seconds = Math.max(0, (now - Date.parse(time)) / 1000)
  if (Number.isNaN(seconds)) return '?'
  if (seconds < minute) return 'now'
  if (seconds < hour) return `${Math.floor(seconds / minute)}m`
  if (seconds < day) return `${Math.floor(seconds / hour)}h`
  if (seconds < 365 * day) return `${Math.floor(seconds / day)}d`
  return `${Math.floor(seconds / (365 * day))}y`
}
