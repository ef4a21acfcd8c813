export { elapsedText } from '@tapetree/session/screen'

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

/** US dollars, to the cent. */
export function costText(cost: number): string {
  if (cost === 0) return '$0'
  return cost < 0.01 ? '< $0.01' : `$${cost.toFixed(2)}`
}

/** `1 entry`, `2 entries`, `10,000 entries`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${numberText(count)} ${count === 1 ? one : many}`
}

function numberText(count: number): string {
  return count < 1000 ? String(count) : count.toLocaleString('en')
}

/** The size of a context window, short enough for a list: `900`, `128k`, `1M`. */
export function tokenText(count: number): string {
  if (count < 1000) return String(count)
  const thousands = Math.round(count / 1000)
  return thousands < 1000 ? `${thousands}k` : `${Math.round(thousands / 100) / 10}M`
}
