import { memoryStore } from '@tapetree/session'
import type { PlaybackEvent, Player, PlayerClock } from '@tapetree/session/view'
import { user } from '@tapetree/session/testing'
import { expect, test } from 'vitest'
import { actionsIn, nextSpeed } from './play-keys.ts'
import { Playback, type PlaybackState } from './playback.ts'

async function playerOf(count: number): Promise<Player> {
  let time = Date.parse('2026-11-15T12:00:00Z')
  const store = memoryStore({ now: () => new Date((time += 1000)) })
  await using session = await store.create()
  for (let index = 1; index <= count; index++) await user(session, `event ${index}`)
  return await session.play()
}

/** Records waits, and ends them when the test says so. */
class TestClock implements PlayerClock {
  readonly waits: number[] = []
  #let = Promise.withResolvers<void>()
  #begun = Promise.withResolvers<void>()

  now = (): number => 0

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    this.waits.push(ms)
    this.#begun.resolve()
    this.#begun = Promise.withResolvers()
    const { promise, reject } = Promise.withResolvers<never>()
    signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
    await Promise.race([this.#let.promise, promise])
  }

  waiting(): Promise<void> {
    return this.#begun.promise
  }

  release(): void {
    this.#let.resolve()
  }
}

interface Played {
  playback: Playback
  shown: string[]
  states: PlaybackState[]
  clock: TestClock
  /** Resolves when playback has paused for the user. */
  paused: () => Promise<void>
}

async function playing(count: number, signal = new AbortController().signal): Promise<Played> {
  const clock = new TestClock()
  const shown: string[] = []
  const states: PlaybackState[] = []
  let pause = Promise.withResolvers<void>()
  const show = async (event: PlaybackEvent): Promise<void> => {
    shown.push(event.type === 'user_prompt' ? event.text : event.type)
  }
  const status = (state: PlaybackState): void => {
    states.push(state)
    if (!state.isPaused) return
    pause.resolve()
    pause = Promise.withResolvers()
  }
  const playback = new Playback({
    player: await playerOf(count),
    speed: 1,
    maxGapMs: 2000,
    show,
    status,
    signal,
    clock,
  })
  return { playback, shown, states, clock, paused: () => pause.promise }
}

test('playback can be paused, stepped, sped up and moved, and plays to the end', async () => {
  const { playback, shown, states, clock, paused } = await playing(15)
  let waiting = clock.waiting()
  const done = playback.run()
  await waiting
  expect(shown).toEqual(['session_start'])
  let stopped = paused()
  playback.act({ type: 'pause' })
  await stopped
  stopped = paused()
  playback.act({ type: 'step' })
  await stopped
  expect(shown).toEqual(['session_start', 'event 1'])
  stopped = paused()
  playback.act({ type: 'seek', events: 10 })
  playback.act({ type: 'speed', by: 1 })
  await stopped
  expect(states.at(-1)).toMatchObject({ position: 12, length: 16, speed: 2, isPaused: true })
  waiting = clock.waiting()
  playback.act({ type: 'pause' })
  await waiting
  expect(shown.slice(2)).toEqual(['event 12'])
  expect(clock.waits.at(-1)).toBe(500)
  clock.release()
  await done
  expect(shown.slice(2)).toEqual(['event 12', 'event 13', 'event 14', 'event 15'])
})

test('playback ends on request, and throws when it is interrupted', async () => {
  const first = await playing(5)
  let waiting = first.clock.waiting()
  const done = first.playback.run()
  await waiting
  first.playback.act({ type: 'quit' })
  await done
  expect(first.shown).toEqual(['session_start'])
  const controller = new AbortController()
  const second = await playing(5, controller.signal)
  waiting = second.clock.waiting()
  const running = second.playback.run()
  await waiting
  controller.abort()
  await expect(running).rejects.toThrow('aborted')
})

test('keys are recognized however they arrive', () => {
  expect(actionsIn(' .\u001b[C\u001bOD+-xq\u0003').map(({ type }) => type)).toEqual([
    ...['pause', 'step', 'seek', 'seek', 'speed', 'speed', 'quit', 'interrupt'],
  ])
  expect([nextSpeed(1, 1), nextSpeed(50, 1), nextSpeed(Infinity, 1), nextSpeed(3, -1), nextSpeed(0.25, -1)]).toEqual([
    ...[2, Infinity, Infinity, 2, 0.25],
  ])
})
