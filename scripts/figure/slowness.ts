/**
 * What the work below took on a quiet machine of 2 cores on 2026-11-15. Figures that were accepted before that day are of another machine, on which
 * it was not timed.
 */
const referenceMs = 30

/**
 * How many times longer than that it takes here and now; at least 1. Limits in milliseconds are stretched by it:
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
