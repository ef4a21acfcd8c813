/** The exports of a file in `bench/` or `tests/proofs/`. `docs/reference/proofs.md` is generated from them. */
export interface Figure {
  name: string
  /** The promise that it tries to break or measures, as a sentence. */
  claim: string
  /** How much it tries at each size. `Infinity` is everything there is. Absent if both sizes do the same. */
  sizes?: Record<FigureContext['size'], Record<string, number>>
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
