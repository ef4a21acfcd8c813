import type { SessionHandle } from '@tapetree/client'
import type { Transcript } from '@tapetree/session'

interface PacedPrinterOptions {
  print: (transcript: Transcript) => Promise<void>
  /** Nothing more can be printed. */
  onFailure: () => void
}

/** Prints a transcript as it grows. A slow reader is told less often, and never less. */
export class PacedPrinter {
  readonly #handle: SessionHandle
  readonly #options: PacedPrinterOptions
  readonly #stop: () => void
  #isDue = false
  #printing: Promise<void> | undefined
  #failure: Error | undefined

  constructor(handle: SessionHandle, options: PacedPrinterOptions) {
    this.#handle = handle
    this.#options = options
    this.#stop = handle.subscribe(({ type }) => {
      if (type === 'transcript') this.#wake()
    })
  }

  /** Resolves when everything up to now is printed. Rejects where it cannot be. */
  async settled(): Promise<void> {
    this.#wake()
    await this.#printing
    if (this.#failure !== undefined) throw this.#failure
  }

  close(): void {
    this.#stop()
  }

  #wake(): void {
    this.#isDue = true
    this.#printing ??= this.#printAll().finally(() => (this.#printing = undefined))
  }

  async #printAll(): Promise<void> {
    while (this.#isDue && this.#failure === undefined) {
      this.#isDue = false
      try {
        await this.#options.print(this.#handle.transcript)
      } catch (error) {
        this.#failure = error instanceof Error ? error : new Error(String(error))
        this.#options.onFailure()
      }
    }
  }
}
