import { readFrame, type Incoming } from '@tapetree/client'
import type { Sink } from '../live/connection.ts'

export interface LocalSinkOptions {
  /** Takes one frame; where it gives a promise, the next lines wait for it. */
  receive: (incoming: Incoming) => void | Promise<void>
  /** It was closed from the other side. */
  closed: (code: number) => void
  /** There is room again. */
  drained: () => void
}

/** Frames for a screen in this process. There is no queue: while one frame is worked on, there is no room for the next. */
export class LocalSink implements Sink {
  readonly #options: LocalSinkOptions
  #isHolding = false
  #isOver = false

  constructor(options: LocalSinkOptions) {
    this.#options = options
  }

  get buffered(): number {
    return this.#isHolding ? Infinity : 0
  }

  send(frame: Buffer): void {
    if (this.#isOver) return
    const held = this.#options.receive(readFrame(frame.toString()))
    if (held) void this.#hold(held)
  }

  close(code: number): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#options.closed(code)
  }

  /** Nothing is heard of it from here on. */
  end(): void {
    this.#isOver = true
  }

  async #hold(until: Promise<void>): Promise<void> {
    this.#isHolding = true
    await until
    this.#isHolding = false
    if (!this.#isOver) this.#options.drained()
  }
}
