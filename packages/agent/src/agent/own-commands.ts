/** Commands of the user's own that run. They end with their session at the latest, and what they came to is in its log. */
export class OwnCommands {
  readonly #running = new Map<AbortController, Promise<unknown>>()

  async run<T>(work: (signal: AbortSignal) => Promise<T>, signal?: AbortSignal): Promise<T> {
    const controller = new AbortController()
    const done = work(signal ? AbortSignal.any([signal, controller.signal]) : controller.signal)
    this.#running.set(controller, done)
    try {
      return await done
    } finally {
      this.#running.delete(controller)
    }
  }

  /** Resolves when all of them are in the log. Says whether there were any. */
  async stop(): Promise<boolean> {
    const running = [...this.#running]
    for (const [controller] of running) controller.abort()
    await Promise.allSettled(running.map(([, done]) => done))
    return running.length > 0
  }
}
