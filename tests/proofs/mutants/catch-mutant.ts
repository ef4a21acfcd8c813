/** Adds a fault to the running code and returns a function that removes it. */
export type Mutant = () => () => void

export interface Caught {
  problem: string
  /** How many histories it took. */
  tries: number
}

/** In so many histories a fault must show. */
const maxTries = 500

/** Plays histories with a fault until one shows a problem. Undefined if none does. */
export async function catchMutant(
  mutant: Mutant,
  play: () => Promise<{ problems: readonly string[] }>,
): Promise<Caught | undefined> {
  const mend = mutant()
  try {
    for (let tries = 1; tries <= maxTries; tries++) {
      const [problem] = (await play()).problems
      if (problem !== undefined) return { problem, tries }
    }
    return undefined
  } finally {
    mend()
  }
}

/** One line of the report of a proof. */
export function caughtLine(mutant: string, caught: Caught | undefined): string {
  return `${mutant.padEnd(54)} ${caught ? `${caught.problem.slice(0, 90)} (history ${caught.tries})` : 'NOT CAUGHT'}`
}

/** Replaces one member of an object or a prototype. The returned function restores it. */
export function replaceMember<T extends object, Key extends keyof T>(
  target: T,
  key: Key,
  make: (original: T[Key]) => T[Key],
): () => void {
  const original = target[key]
  target[key] = make(original)
  return () => void (target[key] = original)
}
