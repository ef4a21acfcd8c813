import { median } from './percentile.ts'

/** One round. Wall time in milliseconds is taken unless it returns its own measure. */
export type Round = () => number | void | Promise<number | void>

export interface Comparison {
  bare: number
  ours: number
  /** Ours divided by bare: 1 is free, 2 is twice as slow. */
  ratio: number
}

/**
 * The bare operation and ours in turn, so that a busy moment of the machine hits both, and the medians of each.
 * The first round of both warms up and is not counted.
 */
export async function compare(options: {
  label: string
  bare: Round
  ours: Round
  say: (line: string) => void
  rounds?: number
  unit?: string
}): Promise<Comparison> {
  const { label, bare, ours, say, rounds = 5, unit = 'ms' } = options
  if (rounds < 5) throw new RangeError(`A comparison needs at least 5 rounds, not ${rounds}`)
  const samples = { bare: [] as number[], ours: [] as number[] }
  await measure(bare)
  await measure(ours)
  for (let round = 0; round < rounds; round += 1) {
    // Who goes first alternates: the second of a pair finds warmer caches.
    const order = round % 2 === 0 ? (['bare', 'ours'] as const) : (['ours', 'bare'] as const)
    for (const side of order) samples[side].push(await measure(side === 'bare' ? bare : ours))
  }
  const result = { bare: median(samples.bare), ours: median(samples.ours) }
  const ratio = result.ours / result.bare
  say(
    `${label}: bare ${result.bare.toFixed(3)} ${unit}, ours ${result.ours.toFixed(3)} ${unit}, ` +
      `ratio ${ratio.toFixed(2)} (median of ${rounds})`,
  )
  return { ...result, ratio }
}

async function measure(round: Round): Promise<number> {
  const start = performance.now()
  const own = await round()
  return typeof own === 'number' ? own : performance.now() - start
}
