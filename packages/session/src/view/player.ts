import { eventsOf, type PlaybackEvent, type PlaybackEventOf, type PlaybackEventType } from './event.ts'
import type { Line } from '../line/line.ts'
import { wait } from '../util/wait.ts'

/** `seq` and `time` mean the first event at or after them; past the last one is the end. */
export type PlayerPosition = { index: number } | { seq: number } | { time: string | Date }

/** The clock that playback waits by. `sleep` rejects with the signal's reason when it is aborted. */
export interface PlayerClock {
  now(): number
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

export interface PlayOptions {
  /** 2 plays twice as fast, Infinity without waiting. */
  speed?: number
  /** No wait is longer than this before `speed` is applied. Nobody watches a night go by. */
  maxGapMs?: number
  clock?: PlayerClock
  signal?: AbortSignal
}

/**
 * Goes through a session as it was recorded, event by event. Order is that of the log (`seq`), whatever the clock said at the
 * time. One player is one position: `play` moves it too, and a `seek` while it plays takes effect at the next event.
 */
export class Player {
  readonly #events: readonly PlaybackEvent[]
  /** For each event the latest time reported up to it, so that a time can be looked up although clocks jump. */
  readonly #latestMs: readonly number[]
  #index = 0

  constructor(lines: Iterable<Line>) {
    this.#events = [...lines].sort((left, right) => left.seq - right.seq).flatMap(eventsOf)
    this.#latestMs = latestTimes(this.#events)
  }

  /** How many events there are. */
  get length(): number {
    return this.#events.length
  }

  /** The index of the event that `next()` gives; `length` at the end. */
  get position(): number {
    return this.#index
  }

  /** All events, or those of the given types, wherever the player stands. */
  events<T extends PlaybackEventType = PlaybackEventType>(types?: readonly T[]): PlaybackEventOf<T>[] {
    return this.#events.filter((event) => isOfType(event, types))
  }

  /** The next event (of the given types) and past it; where there is none the player stays where it is. */
  next<T extends PlaybackEventType = PlaybackEventType>(types?: readonly T[]): PlaybackEventOf<T> | undefined {
    const found = this.#find(types)
    if (found) this.#index = found.index + 1
    return found?.event
  }

  /** What `next` would give, without moving. */
  peek<T extends PlaybackEventType = PlaybackEventType>(types?: readonly T[]): PlaybackEventOf<T> | undefined {
    return this.#find(types)?.event
  }

  /** Moves, and gives the event at the new position if there is one. */
  seek(position: PlayerPosition): PlaybackEvent | undefined {
    this.#index = this.#indexOf(position)
    return this.peek()
  }

  reset(): void {
    this.#index = 0
  }

  /**
   * Gives the events from here on at the pace they were recorded. The first comes at once; time that the caller spends on an
   * event counts towards the wait for the next one. Ends after the last event; aborting throws the signal's reason.
   */
  async *play(options: PlayOptions = {}): AsyncGenerator<PlaybackEvent, void, undefined> {
    const { speed = 1, maxGapMs = 10_000, clock = systemClock, signal } = options
    if (!(speed > 0)) throw new RangeError(`The speed of playback must be above 0, and ${speed} is not.`)
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
    if (Number.isNaN(ms)) throw new RangeError(`${String(position.time)} is not a time that can be sought.`)
    return firstIndex(this.length, (index) => (this.#latestMs[index] ?? 0) >= ms)
  }

  /** Never negative: where the clock went back, the next event comes at once. */
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

/** The first index for which `isReached` holds, which it does for all after it; `length` where there is none. */
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
