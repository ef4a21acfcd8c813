import { eventsOf, type PlaybackEvent, type PlaybackEventOf, type PlaybackEventType } from './event.ts'
import type { Line } from '../line/line.ts'
import { wait } from '../util/wait.ts'

/** `seq` and `time` select the first event at or after them; past the last event is the end. */
export type PlayerPosition = { index: number } | { seq: number } | { time: string | Date }

/** The clock for playback. `sleep` rejects with the signal's reason on abort. */
export interface PlayerClock {
  now(): number
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

export interface PlayOptions {
  /** 2 plays twice as fast, Infinity without pauses. */
  speed?: number
  /** Longest pause before `speed` is applied, so that idle nights are skipped. */
  maxGapMs?: number
  clock?: PlayerClock
  signal?: AbortSignal
}

/**
 * Plays a recorded session event by event, in the order of the log (`seq`) regardless of timestamps. A player
 * has one position: `play` moves it too, and a `seek` during playback takes effect at the next event.
 */
export class Player {
  readonly #events: readonly PlaybackEvent[]
  /** The latest time up to each event, so that times can be searched although clocks jump. */
  readonly #latestMs: readonly number[]
  #index = 0

  constructor(lines: Iterable<Line>) {
    this.#events = [...lines].sort((left, right) => left.seq - right.seq).flatMap(eventsOf)
    this.#latestMs = latestTimes(this.#events)
  }

  /** Number of events. */
  get length(): number {
    return this.#events.length
  }

  /** The index of the event that `next()` returns; `length` at the end. */
  get position(): number {
    return this.#index
  }

  /** All events, or those of the given types, regardless of the position. */
  events<T extends PlaybackEventType = PlaybackEventType>(types?: readonly T[]): PlaybackEventOf<T>[] {
    return this.#events.filter((event) => isOfType(event, types))
  }

  /** Returns the next event (of the given types) and moves past it; stays in place if there is none. */
  next<T extends PlaybackEventType = PlaybackEventType>(types?: readonly T[]): PlaybackEventOf<T> | undefined {
    const found = this.#find(types)
    if (found) this.#index = found.index + 1
    return found?.event
  }

  /** Returns what `next` would return, without moving. */
  peek<T extends PlaybackEventType = PlaybackEventType>(types?: readonly T[]): PlaybackEventOf<T> | undefined {
    return this.#find(types)?.event
  }

  /** Moves, and returns the event at the new position if there is one. */
  seek(position: PlayerPosition): PlaybackEvent | undefined {
    this.#index = this.#indexOf(position)
    return this.peek()
  }

  reset(): void {
    this.#index = 0
  }

  /**
   * Yields the remaining events at their recorded pace. The first comes at once; time the caller spends on an
   * event counts towards the next pause. Ends after the last event; aborting throws the signal's reason.
   */
  async *play(options: PlayOptions = {}): AsyncGenerator<PlaybackEvent, void, undefined> {
    const { speed = 1, maxGapMs = 10_000, clock = systemClock, signal } = options
    if (!(speed > 0)) throw new RangeError(`The playback speed must be above 0, but is ${speed}.`)
    let shownAt: number | undefined
    while (this.#index < this.length) {
      signal?.throwIfAborted()
      if (shownAt !== undefined) {
        const gapMs = Math.min(this.#gapBefore(this.#index), maxGapMs) / speed
        const waitMs = gapMs - Math.max(0, clock.now() - shownAt)
        if (waitMs > 0) await clock.sleep(waitMs, signal)
      }
      const event = this.next()
      if (!event) return
      shownAt = clock.now()
      yield event
    }
  }

  #find<T extends PlaybackEventType>(types?: readonly T[]): { event: PlaybackEventOf<T>; index: number } | undefined {
    for (let index = this.#index; index < this.#events.length; index++) {
      const event = this.#events[index]
      if (event && isOfType(event, types)) return { event, index }
    }
    return undefined
  }

  #indexOf(position: PlayerPosition): number {
    if ('index' in position) return Math.min(Math.max(0, Math.trunc(position.index) || 0), this.length)
    if ('seq' in position) return firstIndex(this.length, (index) => (this.#events[index]?.seq ?? 0) >= position.seq)
    const ms = new Date(position.time).getTime()
    if (Number.isNaN(ms)) throw new RangeError(`Cannot seek to ${String(position.time)}: it is not a valid time.`)
    return firstIndex(this.length, (index) => (this.#latestMs[index] ?? 0) >= ms)
  }

  /** Never negative: if the clock went back, the next event comes at once. */
  #gapBefore(index: number): number {
    const [before, after] = [this.#events[index - 1], this.#events[index]]
    if (!before || !after) return 0
    return Math.max(0, Date.parse(after.timestamp) - Date.parse(before.timestamp)) || 0
  }
}

const systemClock: PlayerClock = { now: () => performance.now(), sleep: wait }

function isOfType<T extends PlaybackEventType>(
  event: PlaybackEvent,
  types: readonly T[] | undefined,
): event is PlaybackEventOf<T> {
  return !types || types.some((type) => type === event.type)
}

function latestTimes(events: readonly PlaybackEvent[]): number[] {
  let latest = -Infinity
  return events.map(({ timestamp }) => {
    const ms = Date.parse(timestamp)
    if (ms > latest) latest = ms
    return latest
  })
}

/** The first index for which `isReached` holds, by binary search; `length` if there is none. */
function firstIndex(length: number, isReached: (index: number) => boolean): number {
  let low = 0
  let high = length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (isReached(middle)) high = middle
    else low = middle + 1
  }
  return low
}
