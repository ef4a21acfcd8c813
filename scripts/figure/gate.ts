/** A figure as it was accepted, what it should become, and which way is better. */
export interface AcceptedFigure {
  accepted: number
  target: number
  better: 'lower' | 'higher'
}

/**
 * The figures that are worse than twice what was accepted, or missing, each as a sentence. Times are allowed to be as many times longer
 * as the machine is slower.
 */
export function worseThanTwice(
  accepted: Record<string, AcceptedFigure>,
  figures: Record<string, number | string>,
  slowness = 1,
): string[] {
  return Object.entries(accepted).flatMap(([name, { accepted: limit, better }]) => {
    const value = figures[name]
    if (typeof value !== 'number' || Number.isNaN(value))
      return [`${name} is in bench/accepted.json but was not measured`]
    const allowed = name.endsWith('_ms') ? limit * slowness : limit
    const isWorse = better === 'lower' ? value > allowed * 2 : value < limit / 2
    return isWorse ? [`${name} is ${value}, worse than twice the accepted ${round(allowed)}`] : []
  })
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}
