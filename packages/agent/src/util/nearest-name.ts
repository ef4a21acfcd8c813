import { editDistance } from './edit-distance.ts'

/** The known name that was probably meant: about a third of its letters may differ. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const wanted = name.toLowerCase().slice(0, 64)
  const distances = known.map((each) => ({ each, distance: editDistance(wanted, each.toLowerCase()) }))
  const best = distances.sort((left, right) => left.distance - right.distance)[0]
  return best && best.distance <= Math.ceil(best.each.length / 3) ? best.each : undefined
}
