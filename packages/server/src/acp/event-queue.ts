/** Events in order, for one reader. */
export class EventQueue<Event> {
  readonly #events: Event[] = []
  #wake: (() => void) | undefined
  #roomAgain: (() => void)[] = []

  get length(): number {
    return this.#events.length
  }

  push(event: Event): void {
    this.#events.push(event)
    this.#wake?.()
  }

  /** Before all others. */
  pushFirst(event: Event): void {
    this.#events.unshift(event)
    this.#wake?.()
  }

  async next(): Promise<Event> {
    for (;;) {
      const event = this.#events.shift()
      if (event !== undefined) {
        for (const resume of this.#roomAgain.splice(0)) resume()
        return event
      }
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  /** Resolves when fewer events than this are waiting. */
  async roomFor(count: number): Promise<void> {
    while (this.#events.length >= count) await new Promise<void>((resolve) => this.#roomAgain.push(resolve))
  }

  /** Drops what is waiting. */
  clear(): void {
    this.#events.length = 0
    for (const resume of this.#roomAgain.splice(0)) resume()
  }
}
