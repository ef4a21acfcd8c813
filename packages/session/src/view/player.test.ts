import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import type { PlaybackEventType } from './event.ts'
import type { Line } from '../line/line.ts'
import { text, type Message } from '../line/message.ts'
import { Player, type PlayerClock } from './player.ts'

const start = Date.parse('2026-11-14T10:00:00Z')

/** Header, prompt, thought + answer, error, answer: six events of five lines, one second apart. */
const session: Line[] = [
  { type: 'session', seq: 1, id: 's', timestamp: at(0), version: 1 },
  message(2, 1, { role: 'user', content: [text('hi')] }),
  message(4, 2, { role: 'assistant', content: [{ type: 'reasoning', reasoning: { text: 'hm' } }, text('ho')] }),
  { type: 'error', seq: 5, id: 'l5', timestamp: at(3), error: { message: 'late' } },
  message(6, 4, { role: 'assistant', content: [text('bye')] }),
]

test('next returns one event after another and then nothing', () => {
  const player = new Player(session)
  const seen = [...player.events(), 'none'].map(() => player.next()?.type)
  expect(seen).toEqual([
    'session_start',
    'user_prompt',
    'agent_thought',
    'agent_message',
    'error',
    'agent_message',
    undefined,
  ])
})

test('next with types skips others, and stays in place if there is none', () => {
  const player = new Player(session)
  const types: PlaybackEventType[] = ['agent_message']
  const seen = [1, 2, 3].map(() => ({ seq: player.next(types)?.seq, position: player.position }))
  expect(seen).toEqual([
    { seq: 4, position: 4 },
    { seq: 6, position: 6 },
    { seq: undefined, position: 6 },
  ])
})

test('peek returns what next would return, without moving', () => {
  const player = new Player(session)
  expect([player.peek(['error'])?.message, player.position, player.peek()?.type]).toEqual(['late', 0, 'session_start'])
})

test('seek finds an index, a seq or a time, the next one if it lies between, and the end after the last', () => {
  const player = new Player(session)
  const positions = [
    { index: 3 },
    { index: -1 },
    { index: 99 },
    { seq: 4 },
    { seq: 3 },
    { seq: 99 },
    { time: at(2) },
    { time: new Date(start + 2500) },
    { time: at(-10) },
    { time: at(10) },
  ].map((position) => {
    const found = player.seek(position)
    return [player.position, found?.seq]
  })
  expect(positions).toEqual([
    [3, 4],
    [0, 1],
    [6, undefined],
    [2, 4],
    [2, 4],
    [6, undefined],
    [2, 4],
    [4, 5],
    [0, 1],
    [6, undefined],
  ])
})

test('an invalid time is rejected', () => {
  expect(() => new Player(session).seek({ time: 'yesterday' })).toThrow(
    'Cannot seek to yesterday: it is not a valid time.',
  )
})

test('reset goes back to the first event', () => {
  const player = new Player(session)
  player.seek({ index: 4 })
  player.reset()
  expect([player.position, player.length]).toEqual([0, 6])
})

test('events of some types are returned regardless of the position', () => {
  const player = new Player(session)
  player.seek({ index: 6 })
  expect(player.events(['agent_message', 'agent_thought']).map(({ text }) => text)).toEqual(['hm', 'ho', 'bye'])
})

test('the order is that of seq, whatever the order of lines and timestamps', () => {
  const shuffled = [3, 1, 2].map((seq) => message(seq, -seq, { role: 'user', content: [text(String(seq))] }))
  expect(new Player(shuffled).events().map(({ seq }) => seq)).toEqual([1, 2, 3])
})

test('playback waits for the recorded time, less the time the caller spends', async () => {
  const clock = scriptedClock()
  const seen: [string, number][] = []
  for await (const event of new Player(session).play({ clock, speed: 2 })) {
    seen.push([event.type, clock.now()])
    clock.spend(100)
  }
  expect({ seen, waits: clock.waits }).toEqual({
    seen: [
      ['session_start', 0],
      ['user_prompt', 500],
      ['agent_thought', 1000],
      ['agent_message', 1100],
      ['error', 1600],
      ['agent_message', 2100],
    ],
    waits: [400, 400, 400, 400],
  })
})

test('long gaps are capped and playback continues at the current position', async () => {
  const clock = scriptedClock()
  const lines = [0, 3600, 7200].map((seconds, index) => message(index + 1, seconds, { role: 'user', content: [] }))
  const player = new Player(lines)
  player.next()
  const seen: number[] = []
  for await (const { seq } of player.play({ clock, maxGapMs: 1500 })) seen.push(seq)
  expect({ seen, waits: clock.waits }).toEqual({ seen: [2, 3], waits: [1500] })
})

test('a seek during playback takes effect at the next event', async () => {
  const player = new Player(session)
  const seen: number[] = []
  for await (const { seq } of player.play({ clock: scriptedClock() })) {
    seen.push(seq)
    if (seq === 2) player.seek({ seq: 6 })
  }
  expect(seen).toEqual([1, 2, 6])
})

test('an abort ends playback with its reason, even during a wait', async () => {
  const controller = new AbortController()
  const clock: PlayerClock = {
    now: () => 0,
    sleep: async (_ms, signal) => {
      controller.abort(new Error('enough'))
      signal?.throwIfAborted()
    },
  }
  const seen: number[] = []
  const playing = (async () => {
    for await (const { seq } of new Player(session).play({ clock, signal: controller.signal })) seen.push(seq)
  })()
  await expect(playing).rejects.toThrow('enough')
  expect(seen).toEqual([1])
})

test('an abort between two events ends playback, even without a wait', async () => {
  const controller = new AbortController()
  const playing = new Player(session).play({ speed: Infinity, signal: controller.signal })
  await playing.next()
  controller.abort(new Error('enough'))
  await expect(playing.next()).rejects.toThrow('enough')
})

test('the system clock waits for months if needed, longer than one timer can', async () => {
  vi.useFakeTimers()
  try {
    const lines = [0, 4_000_000].map((seconds, index) => message(index + 1, seconds, { role: 'user', content: [] }))
    const playing = new Player(lines).play({ maxGapMs: Infinity })
    await playing.next()
    let isShown = false
    const second = playing.next().then(() => (isShown = true))
    await vi.advanceTimersByTimeAsync(3_999_999_000)
    const before = isShown
    await vi.advanceTimersByTimeAsync(2000)
    await second
    expect([before, isShown]).toEqual([false, true])
  } finally {
    vi.useRealTimers()
  }
})

test('without a clock playback uses the system clock, and stops at once when aborted', async () => {
  const controller = new AbortController()
  const lines = [0, 1e9].map((seconds, index) => message(index + 1, seconds, { role: 'user', content: [] }))
  const playing = new Player(lines).play({ maxGapMs: Infinity, signal: controller.signal })
  await playing.next()
  const second = playing.next()
  controller.abort(new Error('enough'))
  await expect(second).rejects.toThrow('enough')
})

test('a speed that is not above 0 is rejected', async () => {
  await expect(new Player(session).play({ speed: 0 }).next()).rejects.toThrow('must be above 0')
})

test('with clocks that jump, every event is played once, in order, and no wait is negative or over the cap', async () => {
  const jumps = fc.array(fc.oneof(fc.integer({ min: -100_000, max: 100_000 }), fc.constant(NaN)), { maxLength: 20 })
  await fc.assert(
    fc.asyncProperty(jumps, async (seconds) => {
      const lines = seconds.map((second, index) => message(index + 1, second, { role: 'user', content: [] }))
      const clock = scriptedClock()
      const seen: number[] = []
      for await (const { seq } of new Player(lines).play({ clock, maxGapMs: 5000 })) seen.push(seq)
      expect(seen).toEqual(lines.map(({ seq }) => seq))
      expect(clock.waits.filter((ms) => !(ms > 0 && ms <= 5000))).toEqual([])
    }),
  )
})

test('with clocks that jump, seeking a time finds the first event of the log at or after it', () => {
  const times = fc.array(fc.oneof(fc.integer({ min: 0, max: 50 }), fc.constant(NaN)), { maxLength: 20 })
  fc.assert(
    fc.property(times, fc.integer({ min: -1, max: 51 }), (seconds, sought) => {
      const player = new Player(
        seconds.map((second, index) => message(index + 1, second, { role: 'user', content: [] })),
      )
      const first = seconds.findIndex((second) => second >= sought)
      player.seek({ time: at(sought) })
      expect(player.position).toBe(first === -1 ? seconds.length : first)
    }),
  )
})

function at(seconds: number): string {
  return Number.isNaN(seconds) ? '' : new Date(start + seconds * 1000).toISOString()
}

function message(seq: number, seconds: number, content: Message): Line {
  return { type: 'message', seq, id: `l${seq}`, parentId: null, timestamp: at(seconds), message: content }
}

/** Time that passes only in `sleep` and on request. */
function scriptedClock(): PlayerClock & { waits: number[]; spend(ms: number): void } {
  let now = 0
  const waits: number[] = []
  return {
    waits,
    now: () => now,
    spend(ms) {
      now += ms
    },
    async sleep(ms) {
      waits.push(ms)
      now += ms
    },
  }
}
