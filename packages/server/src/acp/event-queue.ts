/** Events in order, for one reader. */
export class EventQueue<Event> {
  readonly #events: { event: Event; bytes: number }[] = []
  #bytes = 0
  #wake: (() => void) | undefined
  #roomAgain: (() => void)[] = []

  get length(): number {
    return this.#events.length
  }

  push(event: Event, bytes = 0): void {
    this.#events.push({ event, bytes })
    this.#bytes += bytes
    this.#wake?.()
  }

  /** Before all others. */
  pushFirst(event: Event): void {
    this.#events.unshift({ event, bytes: 0 })
    this.#wake?.()
  }

  async next(): Promise<Event> {
    for (;;) {
      const first = this.#events.shift()
      if (first) {
        this.#bytes -= first.bytes
        for (const resume of this.#roomAgain.splice(0)) resume()
        return first.event
      }
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  /** Resolves when fewer events and bytes than this are waiting. */
  async roomFor({ count, bytes }: { count: number; bytes: number }): Promise<void> {
    while (this.#events.length >= count || this.#bytes >= bytes)
      await new Promise<void>((resolve) => this.#roomAgain.push(resolve))
  }

  /** Drops what is waiting. */
  clear(): void {
    this.#events.length = 0
    this.#bytes = 0
    for (const resume of this.#roomAgain.splice(0)) resume()
  }
}
