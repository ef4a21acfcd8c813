/** What each part of the proof works with. */
export interface PartContext {
  /** Empty, and its own. */
  folder: string
  random: () => number
  complain: (problem: string) => void
}

export function pick<T>(from: readonly T[], random: () => number): T {
  return from[Math.floor(random() * from.length)] as T
}
