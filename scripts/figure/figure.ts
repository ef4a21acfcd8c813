/** What a file in `bench/` or `tests/proofs/` exports: its name, and `run`. */
export interface Figure {
  name: string
  run: (context: FigureContext) => Promise<FigureResult>
}

export interface FigureContext {
  /** `ci` is the size that fits the budget in `.ci/run`; `full` is the size the claims are made for. */
  size: 'ci' | 'full'
  /** Prints one line about what was tried. */
  say: (line: string) => void
  /** A new empty folder, removed when the figure ends. */
  temporaryFolder: () => Promise<string>
  /** Printed at the start; `--seed N` repeats a run. */
  seed: number
  /** Numbers in [0, 1) that depend on the seed alone. */
  random: () => number
}

export interface FigureResult {
  /** Whether every target holds. */
  ok: boolean
  figures: Record<string, number | string>
}
