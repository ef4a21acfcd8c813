import { watch, type FSWatcher } from 'node:fs'

/** Output that arrives this close together is read together. */
const quietMs = 25
/** What the system does not tell, such as the death of a supervisor, is seen this late. */
const pollMs = 500
/** Where folders cannot be watched: there may be no watches left. */
const blindPollMs = 50

/** Tells when there may be something new in a spool folder. */
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

  /** Resolves at the next change since the last one, or after a while. */
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
