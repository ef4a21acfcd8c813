import { AsyncLocalStorage } from 'node:async_hooks'
import { randomFrom } from '../../../scripts/figure/random.ts'

/** A process in the world: what it starts belongs to it, and ends with it. */
export class Life {
  readonly name: string
  isDead = false
  isPaused = false
  /** What its clock shows beyond the time of the world. */
  skewMs = 0
  /** How many of its milliseconds pass in one of the world. */
  rate = 1
  /** What is due while it is paused. */
  readonly backlog: WorldEvent[] = []
  /** Runs work as part of it. Made once, because it costs more than most work. */
  readonly enter: (work: () => void) => void

  constructor(name: string) {
    this.name = name
    this.enter = current.run(this, () => AsyncLocalStorage.snapshot())
  }
}

/** The life that runs now. */
const current = new AsyncLocalStorage<Life>()

interface WorldEvent {
  at: number
  order: number
  life: Life
  /** Undefined once it is canceled or has run. */
  run: (() => void) | undefined
  /** Settles no promise, so nothing has to be waited for after it. */
  isPlain: boolean
  isTimer: boolean
}

interface EventOptions {
  isPlain?: boolean
  isTimer?: boolean
}

/** So that the ids of a simulation are later than those that the process made before. */
const startMs = Date.parse('2030-01-01T00:00:00Z')
/** Now and then the real event loop has its turn. */
const stepsInARow = 5000

/**
 * One queue of events for everything that takes time. While `play` runs, the timers, the clocks and the random numbers of the process
 * belong to the world, for all code that a `Life` has started. Code outside of it keeps the real ones.
 */
export class World {
  readonly random: () => number
  /** For ids: how many are made depends on what the process did before. */
  readonly #randomOfIds: () => number
  readonly #heap: WorldEvent[] = []
  /** Events of later seconds, by their second. Most of them are timeouts, which are canceled long before. */
  readonly #later = new Map<number, WorldEvent[]>()
  /** The first second whose events are not in the heap. */
  #nextSecond = 0
  readonly #paused = new Set<Life>()
  /** What is wrong in a way that no caller hears of. */
  readonly onError: (error: unknown) => void
  #now = 0
  #order = 0
  events = 0

  constructor(seed: number, onError: (error: unknown) => void) {
    this.random = randomFrom(seed)
    this.#randomOfIds = randomFrom(seed + 1)
    this.onError = onError
  }

  /** Milliseconds since the beginning. */
  get now(): number {
    return this.#now
  }

  at(at: number, life: Life, run: () => void, { isPlain = false, isTimer = false }: EventOptions = {}): WorldEvent {
    const event: WorldEvent = { at: Math.max(at, this.#now), order: this.#order++, life, run, isPlain, isTimer }
    const second = Math.floor(event.at / 1000)
    if (second < this.#nextSecond) push(this.#heap, event)
    else {
      const others = this.#later.get(second)
      if (others) others.push(event)
      else this.#later.set(second, [event])
    }
    return event
  }

  /** Runs it as part of a life, later. */
  post(life: Life, run: () => void): void {
    this.at(this.#now, life, run)
  }

  pause(life: Life): void {
    life.isPaused = true
    this.#paused.add(life)
  }

  /** What became due meanwhile follows at once: in the order of time, or timers before answers. */
  unpause(life: Life): void {
    life.isPaused = false
    this.#paused.delete(life)
    const due = life.backlog.splice(0)
    if (this.chance(0.5)) due.sort((left, right) => Number(right.isTimer) - Number(left.isTimer))
    // The same objects, so that each can still be canceled by one before it.
    for (const event of due) push(this.#heap, Object.assign(event, { at: this.#now, order: this.#order++ }))
  }

  kill(life: Life): void {
    life.isDead = true
    for (const event of life.backlog.splice(0)) event.run = undefined
  }

  between(least: number, most: number): number {
    return least + this.random() * (most - least)
  }

  chance(share: number): boolean {
    return this.random() < share
  }

  pick<T>(all: readonly T[]): T {
    return all[Math.floor(this.random() * all.length)] as T
  }

  /** Runs work as part of a life, and all events, until the work is done. */
  async play(life: Life, work: () => Promise<void>): Promise<void> {
    const restore = this.#install()
    const failed = (error: unknown): void => this.onError(error)
    process.on('unhandledRejection', failed)
    try {
      let isDone = false
      const done = current.run(life, work).finally(() => (isDone = true))
      await this.#run(() => isDone)
      await done
    } finally {
      process.off('unhandledRejection', failed)
      restore()
      this.#end()
    }
  }

  /** Timers that outlive the world do not keep it in memory. */
  #end(): void {
    for (const life of this.#paused) this.kill(life)
    for (const event of [...this.#heap, ...[...this.#later.values()].flat()]) event.run = undefined
    this.#heap.length = 0
    this.#later.clear()
  }

  #run(isDone: () => boolean): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    let steps = 0
    const step = (): void => {
      try {
        if (isDone()) return resolve()
        if (!this.#next()) return reject(new Error('Nothing is left to happen, and the work is not done.'))
      } catch (error) {
        return reject(error)
      }
      // The queue of ticks has its turn when all promises are settled.
      if (++steps % stepsInARow === 0) real.setImmediate(step)
      else void settled.then(later)
    }
    const settled = Promise.resolve()
    const later = (): void => process.nextTick(step)
    real.setImmediate(step)
    return promise
  }

  #pop(): WorldEvent | undefined {
    while (this.#heap.length === 0 && this.#later.size > 0) {
      for (const event of this.#later.get(this.#nextSecond) ?? []) if (event.run) push(this.#heap, event)
      this.#later.delete(this.#nextSecond++)
    }
    return pop(this.#heap)
  }

  /** Runs the next event that may settle a promise, and all before it. */
  #next(): boolean {
    for (let event = this.#pop(); event; event = this.#pop()) {
      const { run, life, isPlain } = event
      if (life.isDead) event.run = undefined
      if (!run || life.isDead) continue
      this.#now = event.at
      if (life.isPaused) {
        life.backlog.push(event)
        continue
      }
      this.events++
      event.run = undefined
      if (isPlain) {
        run()
        continue
      }
      life.enter(() => {
        try {
          run()
        } catch (error) {
          this.onError(error)
        }
      })
      return true
    }
    return false
  }

  /** Replaces what the process offers of time and chance. Returns a function that restores it. */
  #install(): () => void {
    const { random } = this
    const timer = (life: Life, ms: number, call: () => void): Timer => {
      const delay = Math.max(1, ms || 0) / life.rate
      return new Timer(this.at(this.#now + delay, life, call, { isTimer: true }))
    }
    const every = (life: Life, ms: number, call: () => void): Timer => {
      const again = (): void => {
        started.event = this.at(this.#now + Math.max(1, ms) / life.rate, life, again, { isTimer: true })
        call()
      }
      const started = timer(life, ms, again)
      return started
    }
    const now = (life: Life): number => Math.floor(startMs + life.skewMs + this.#now * life.rate)
    const clear = (clearReal: (timer: never) => void) => (given: unknown) => {
      if (given instanceof Timer) given.event.run = undefined
      else clearReal(given as never)
    }
    const inLife =
      (make: (life: Life, ms: number, call: () => void) => Timer, otherwise: (...args: never[]) => unknown) =>
      (call: (...args: unknown[]) => void, ms = 0, ...args: unknown[]): unknown => {
        const life = current.getStore()
        return life ? make(life, ms, () => call(...args)) : otherwise(...([call, ms, ...args] as never[]))
      }
    class WorldDate extends real.Date {
      constructor(...args: [] | [number]) {
        const life = args.length === 0 ? current.getStore() : undefined
        if (life) super(now(life))
        else super(...(args as [number]))
      }
      static override now(): number {
        const life = current.getStore()
        return life ? now(life) : real.Date.now()
      }
    }
    Object.assign(globalThis, {
      setTimeout: inLife(timer, real.setTimeout),
      setInterval: inLife(every, real.setInterval),
      setImmediate: (call: (...args: unknown[]) => void, ...args: unknown[]) => {
        const life = current.getStore()
        return life ? new Timer(this.at(this.#now, life, () => call(...args))) : real.setImmediate(call, ...args)
      },
      clearTimeout: clear(real.clearTimeout),
      clearInterval: clear(real.clearInterval),
      clearImmediate: clear(real.clearImmediate),
      Date: WorldDate,
    })
    performance.now = () => (current.getStore() ? this.#now : real.performanceNow())
    Math.random = () => (current.getStore() ? random() : real.random())
    crypto.getRandomValues = ((array: Uint32Array) => {
      if (!current.getStore()) return real.getRandomValues(array)
      for (let index = 0; index < array.length; index++) array[index] = Math.floor(this.#randomOfIds() * 2 ** 32)
      return array
    }) as typeof crypto.getRandomValues
    return () => {
      const { performanceNow, random: realRandom, getRandomValues, ...globals } = real
      Object.assign(globalThis, globals)
      performance.now = performanceNow
      Math.random = realRandom
      crypto.getRandomValues = getRandomValues
    }
  }
}

const real = {
  setTimeout,
  setInterval,
  setImmediate,
  clearTimeout,
  clearInterval,
  clearImmediate,
  Date,
  performanceNow: performance.now.bind(performance),
  random: Math.random,
  getRandomValues: crypto.getRandomValues.bind(crypto),
}

/** As the timers of Node. */
class Timer {
  event: WorldEvent

  constructor(event: WorldEvent) {
    this.event = event
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }
}

function isBefore(left: WorldEvent, right: WorldEvent): boolean {
  return left.at < right.at || (left.at === right.at && left.order < right.order)
}

function push(heap: WorldEvent[], event: WorldEvent): void {
  let index = heap.length
  heap.push(event)
  while (index > 0) {
    const parent = (index - 1) >> 1
    const above = heap[parent] as WorldEvent
    if (!isBefore(event, above)) break
    heap[index] = above
    index = parent
  }
  heap[index] = event
}

function pop(heap: WorldEvent[]): WorldEvent | undefined {
  const first = heap[0]
  const last = heap.pop()
  if (!first || !last || heap.length === 0) return first
  let index = 0
  for (;;) {
    let child = 2 * index + 1
    if (child >= heap.length) break
    if (child + 1 < heap.length && isBefore(heap[child + 1] as WorldEvent, heap[child] as WorldEvent)) child++
    const below = heap[child] as WorldEvent
    if (!isBefore(below, last)) break
    heap[index] = below
    index = child
  }
  heap[index] = last
  return first
}
