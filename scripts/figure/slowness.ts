/** What the work below takes on the machine on which the accepted figures were measured, with nothing beside it. */
const referenceMs = 25

/**
 * How many times longer than there the same piece of work takes here and now; at least 1. Limits in milliseconds are stretched by it:
 * a slow or busy machine is not a fault of what is measured. Ratios need no such thing.
 */
export function slowness(): number {
  const times = Array.from({ length: 5 }, timed).toSorted((left, right) => left - right)
  return Math.max(1, (times[2] as number) / referenceMs)
}

const entry = JSON.stringify({ seq: 1, type: 'message', message: { role: 'user', content: ['a few words of text'] } })

function timed(): number {
  const start = performance.now()
  for (let count = 0; count < 20_000; count++) JSON.stringify(JSON.parse(entry))
  return performance.now() - start
}
