import type { Clock } from '@tapetree/session/util/wait'

/** A timeout that can be paused. */
export class TimeLimit {
  readonly #clock: Clock
  readonly #passed = Promise.withResolvers<'passed'>()
  #leftMs: number
  #since = 0
  #pauses = 0
  #wait: AbortController | undefined

  constructor(ms: number, clock: Clock) {
    this.#clock = clock
    this.#leftMs = ms
    this.#run()
  }

  /** Never resolves if it is stopped first. */
  get passed(): Promise<'passed'> {
    return this.#passed.promise
  }

  pause(): void {
    if (this.#pauses++ === 0) this.#halt()
  }

  resume(): void {
    if (--this.#pauses === 0) this.#run()
  }

  /** Sets the remaining time. */
  restart(ms: number): void {
    const isRunning = this.#pauses === 0
    if (isRunning) this.#halt()
    this.#leftMs = ms
    if (isRunning) this.#run()
  }

  get leftMs(): number {
    return this.#wait ? this.#leftMs - (this.#clock.now() - this.#since) : this.#leftMs
  }

  stop(): void {
    this.#pauses = Infinity
    this.#halt()
  }

  #run(): void {
    if (!Number.isFinite(this.#leftMs)) return
    const wait = new AbortController()
    this.#wait = wait
    this.#since = this.#clock.now()
    const passed = (): void => this.#passed.resolve('passed')
    void this.#clock.wait(Math.max(0, this.#leftMs), wait.signal).then(passed, () => undefined)
  }

  #halt(): void {
    this.#leftMs = this.leftMs
    this.#wait?.abort()
    this.#wait = undefined
  }
}
