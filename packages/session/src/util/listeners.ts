/** Listeners called with each event, in the order they were added. */
export class Listeners<Event> {
  readonly #listeners = new Set<(event: Event) => void>()
  readonly #onError: (error: unknown) => void

  /**
   * `onError` receives what a listener throws. By default the error is rethrown as uncaught, as `EventTarget`
   * does in Node.
   */
  constructor(onError: (error: unknown) => void = throwUncaught) {
    this.#onError = onError
  }

  get size(): number {
    return this.#listeners.size
  }

  /** Returns a function that removes this registration: a listener added twice is called twice. */
  add(listener: (event: Event) => void): () => void {
    const added = (event: Event): void => listener(event)
    this.#listeners.add(added)
    return () => void this.#listeners.delete(added)
  }

  /** Calls all listeners, even if one throws. Listeners removed during the call are skipped. */
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
