/** The value that `share` of the samples do not exceed, by nearest rank. A tail needs a body: 1,000 samples or more. */
export function percentile(samples: readonly number[], share: number): number {
  if (samples.length < 1000) throw new RangeError(`A percentile needs at least 1,000 samples, not ${samples.length}`)
  const sorted = samples.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] as number
}

export function median(samples: readonly number[]): number {
  if (samples.length === 0) throw new RangeError('A median needs a sample')
  const sorted = samples.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] as number
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] as number)) / 2
}
