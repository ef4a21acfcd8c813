import { systemClock, type Clock } from '@tapetree/agent'
import type { PlaybackEventType, Player } from '@tapetree/session'
import { toWire } from './snake-case.ts'

export interface PlayRequest {
  speed: number
  /** Absent: all. */
  types: readonly PlaybackEventType[] | undefined
  clock?: Clock | undefined
  signal: AbortSignal
}

/** The events from where the player stands on, one a line, at the pace they were recorded. A reader that is slow is waited for. */
export function playSession(player: Player, { signal, ...request }: PlayRequest): ReadableStream<Uint8Array> {
  const left = new AbortController()
  const lines = linesOf(player, { ...request, signal: AbortSignal.any([signal, left.signal]) })
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        // Who is let go, as when the server goes down, has had all up to here.
        const next = await lines.next().catch(() => ({ done: true as const, value: undefined }))
        if (next.done) controller.close()
        else controller.enqueue(Buffer.from(next.value))
      },
      cancel: () => left.abort(),
    },
    { highWaterMark: 0 },
  )
}

async function* linesOf(
  player: Player,
  { speed, types, clock = systemClock, signal }: PlayRequest,
): AsyncGenerator<string, void> {
  const playerClock = { now: () => clock.now(), sleep: (ms: number, until?: AbortSignal) => clock.wait(ms, until) }
  for await (const event of player.play({ speed, signal, clock: playerClock })) {
    if (types?.includes(event.type) ?? true) yield `${JSON.stringify(toWire(event))}\n`
  }
}
