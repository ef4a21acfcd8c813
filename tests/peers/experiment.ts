/** One row of the table: what was tried with others, what came of it there, and the same tried here. */
export interface Experiment {
  experiment: string
  /** As it was measured in November 2026; the versions are on the page `docs/peers.md`. */
  others: string
  /** Tries it as a user would. Gives what happens in a sentence, and fails where that is not what it must be. */
  attempt: () => Promise<string>
}
