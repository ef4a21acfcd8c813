/** Functions that are called with each event, in the order in which they were added. */
export class Listeners<Event> {
  readonly #listeners = new Set<(event: Event) => void>()
  readonly #onError: (error: unknown) => void

  /** `onError` gets what a listener throws. By default the error is thrown again as an uncaught one, as `EventTarget` does in Node. */
  constructor(onError: (error: unknown) => void = throwUncaught) {
    this.#onError = onError
  }

  get size(): number {
    return this.#listeners.size
  }

  /** Returns a function that removes what this call added: a function that is added twice is called twice. */
  add(listener: (event: Event) => void): () => void {
    const added = (event: Event): void => listener(event)
    this.#listeners.add(added)
    return () => void this.#listeners.delete(added)
  }

  /** Calls all of them, also if one throws. A listener that is removed meanwhile is not called. */
  notify(event: Event): void {
    for (const listener of this.#listeners) {
      try {
        listener(event)
      } catch (error) {
        this.#onError(error)
      }
    }
  }

  clear(): void {
    this.#listeners.clear()
  }
}

function throwUncaught(error: unknown): void {
  queueMicrotask(() => {
    throw error
  })
}
