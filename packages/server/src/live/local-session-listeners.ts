import type { SessionChange } from '@tapetree/client'

/** Whoever wants to know what changes in a session of this process. */
export class Listeners {
  readonly #listeners = new Set<(change: SessionChange) => void>()
  readonly #onProblem: (error: unknown) => void

  /** Told of a listener that throws; without it the process is warned. */
  constructor(onProblem: ((error: unknown) => void) | undefined) {
    this.#onProblem = onProblem ?? warn
  }

  add(listener: (change: SessionChange) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** A broken screen is its own problem: the session and the others go on. */
  tell(change: SessionChange): void {
    for (const listener of this.#listeners) {
      try {
        listener(change)
      } catch (error) {
        this.#onProblem(error)
      }
    }
  }
}

function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error))
}
