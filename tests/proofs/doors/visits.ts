import { allGood, contentTypeKinds, hostKinds, originKinds, tokenKinds, type Visit, type Way } from './visit.ts'

const axes = {
  token: tokenKinds,
  host: hostKinds,
  origin: originKinds,
  contentType: contentTypeKinds,
} as const

type Axis = keyof typeof axes

/** At size full every combination; otherwise the pairs that a server could mix up, with the rest as it should be, and some at random. */
export function visitsTo(way: Way, { isFull, random }: { isFull: boolean; random: () => number }): Visit[] {
  const own: Axis[] =
    way.mediaTypes.length > 0 ? ['token', 'host', 'origin', 'contentType'] : ['token', 'host', 'origin']
  if (isFull) return cross(own)
  const visits = new Map<string, Visit>()
  const pairs: Axis[][] = [
    ['token', 'host'],
    ['token', 'origin'],
    ['token', 'contentType'],
    ['origin', 'contentType'],
  ]
  for (const pair of pairs.filter((axes) => axes.every((axis) => own.includes(axis)))) {
    for (const visit of cross(pair)) visits.set(JSON.stringify(visit), visit)
  }
  for (let more = 0; more < randomVisits; more++) {
    const visit = Object.fromEntries(own.map((axis) => [axis, pick(axes[axis], random)])) as Partial<Visit>
    const whole = { ...allGood, ...visit }
    visits.set(JSON.stringify(whole), whole)
  }
  return [...visits.values()]
}

const randomVisits = 40

function cross(own: readonly Axis[]): Visit[] {
  let visits: Visit[] = [allGood]
  for (const axis of own) {
    visits = visits.flatMap((visit) => axes[axis].map((kind) => ({ ...visit, [axis]: kind })))
  }
  return visits
}

function pick<Kind>(kinds: readonly Kind[], random: () => number): Kind {
  return kinds[Math.floor(random() * kinds.length)] as Kind
}
