import type { PlaybackEvent, Player, PlayerClock } from '@tapetree/session/view'
import { nextSpeed, type PlayAction } from './play-keys.ts'

export interface PlaybackOptions {
  player: Player
  speed: number
  maxGapMs: number
  show: (event: PlaybackEvent) => Promise<void>
  /** Called after every change by the user, and before each wait. */
  status?: (state: PlaybackState) => void
  signal: AbortSignal
  clock?: PlayerClock
}

export interface PlaybackState {
  position: number
  length: number
  speed: number
  isPaused: boolean
  /** The next event. */
  next: PlaybackEvent | undefined
}

type PlaybackAction = Exclude<PlayAction, { type: 'interrupt' }>

/** Plays to the end and handles commands meanwhile. */
export class Playback {
  readonly #options: PlaybackOptions
  #speed: number
  #isPaused = false
  #hasQuit = false
  /** Ends the wait for the next event because something has changed. */
  #wake = new AbortController()
  /** Pending commands. They never run between an event and its text. */
  readonly #actions: PlaybackAction[] = []

  constructor(options: PlaybackOptions) {
    this.#options = options
    this.#speed = options.speed
  }

  act(action: PlaybackAction): void {
    this.#actions.push(action)
    this.#wake.abort()
  }

  async run(): Promise<void> {
    const { signal } = this.#options
    for (;;) {
      signal.throwIfAborted()
      this.#wake = new AbortController()
      for (const action of this.#actions.splice(0)) await this.#act(action)
      if (this.#hasQuit) return
      this.#tell()
      if (this.#isPaused) await aborted(AbortSignal.any([signal, this.#wake.signal]))
      else if (await this.#playOn()) return
    }
  }

  /** True at the end; false if something has changed. */
  async #playOn(): Promise<boolean> {
    const { player, maxGapMs, signal, show, clock } = this.#options
    const wake = this.#wake.signal
    const options = { speed: this.#speed, maxGapMs, signal: AbortSignal.any([signal, wake]), ...(clock && { clock }) }
    try {
      for await (const event of player.play(options)) {
        await show(event)
        this.#tell()
      }
      return !wake.aborted
    } catch (error) {
      if (signal.aborted || !wake.aborted) throw error
      return false
    }
  }

  async #act(action: PlaybackAction): Promise<void> {
    const { player, show } = this.#options
    switch (action.type) {
      case 'pause':
        this.#isPaused = !this.#isPaused
        return
      case 'step': {
        this.#isPaused = true
        const event = player.next()
        if (event) await show(event)
        return
      }
      case 'seek':
        player.seek({ index: player.position + action.events })
        return
      case 'speed':
        this.#speed = nextSpeed(this.#speed, action.by)
        return
      case 'quit':
        this.#hasQuit = true
        return
      default:
        action satisfies never
    }
  }

  #tell(): void {
    const { player, status } = this.#options
    const { position, length } = player
    status?.({ position, length, speed: this.#speed, isPaused: this.#isPaused, next: player.peek() })
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  if (signal.aborted) resolve()
  else signal.addEventListener('abort', () => resolve(), { once: true })
  return promise
}
