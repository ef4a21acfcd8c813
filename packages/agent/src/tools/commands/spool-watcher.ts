import { watch, type FSWatcher } from 'node:fs'

/** Output that arrives within this time is read together. */
const quietMs = 25
/** Interval for changes without a notification, such as the death of a supervisor. */
const pollMs = 500
/** Interval if folders cannot be watched, for example because no watches are left. */
const blindPollMs = 50

/** Reports possible changes in a spool folder. */
export class SpoolWatcher implements Disposable {
  #watcher: FSWatcher | undefined
  #timer: NodeJS.Timeout | undefined
  #wake: () => void = () => undefined
  #isChanged = false

  constructor(folder: string) {
    try {
      this.#watcher = watch(folder, (_, name) => this.#changed(name === 'exit' ? 0 : quietMs))
      this.#watcher.on('error', () => this.#goBlind())
    } catch {
      this.#goBlind()
    }
  }

  /** Resolves at the next change since the last call, or after a while. */
  async changed(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted()
    if (!this.#isChanged) {
      await new Promise<void>((resolve) => {
        const poll = setTimeout(resolve, this.#watcher ? pollMs : blindPollMs)
        this.#wake = () => {
          clearTimeout(poll)
          resolve()
        }
        signal?.addEventListener('abort', this.#wake, { once: true })
      })
      signal?.removeEventListener('abort', this.#wake)
    }
    this.#isChanged = false
    signal?.throwIfAborted()
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
    this.#watcher?.close()
    this.#wake()
  }

  #changed(delayMs: number): void {
    if (delayMs > 0 && this.#timer) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#isChanged = true
      this.#wake()
    }, delayMs)
  }

  #goBlind(): void {
    this.#watcher?.close()
    this.#watcher = undefined
    this.#wake()
  }
}
