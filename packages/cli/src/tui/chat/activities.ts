export interface Activity {
  label: string
  startedAt: number
}

/** Pending operations. Shows those that take longer than a second, with the elapsed time. */
export class Activities {
  readonly #now: () => number
  readonly #onChange: () => void
  readonly #running = new Set<Activity>()

  constructor({ now, onChange }: { now: () => number; onChange: () => void }) {
    this.#now = now
    this.#onChange = onChange
  }

  get isIdle(): boolean {
    return this.#running.size === 0
  }

  async track<T>(label: string, work: Promise<T>): Promise<T> {
    const activity = { label, startedAt: this.#now() }
    this.#running.add(activity)
    this.#onChange()
    try {
      return await work
    } finally {
      this.#running.delete(activity)
      this.#onChange()
    }
  }

  /** `Opening the session, 3 s`. */
  lines(): string[] {
    return [...this.#running].flatMap(({ label, startedAt }) => {
      const seconds = Math.floor((this.#now() - startedAt) / 1000)
      return seconds < 1 ? [] : [`${label}, ${seconds} s`]
    })
  }
}

/** Calls back once a second, only while an elapsed time is shown. */
export class Ticker {
  readonly #onTick: () => void
  #timer: NodeJS.Timeout | undefined

  constructor(onTick: () => void) {
    this.#onTick = onTick
  }

  run(isNeeded: boolean): void {
    if (isNeeded) this.#timer ??= setInterval(this.#onTick, 1000)
    else this.stop()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
