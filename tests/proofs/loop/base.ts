import { text } from '@tapetree/session'
import { DrivenTools } from './driven-tools.ts'
import { DyingDisk, emptyDisk } from './dying-disk.ts'
import { Life } from './life.ts'
import type { Base } from './scene.ts'

/** A session with some history in it, so that there is something to compact. */
export async function makeBase(): Promise<Base> {
  const disk = new DyingDisk(emptyDisk)
  const ended = Promise.withResolvers<void>()
  const life = await Life.open({
    disk,
    tools: new DrivenTools({ isDeaf: false, hasDeadline: false }),
    setup: { policy: 'skip-remaining', calls: [], begins: 'before-the-answer' },
    witness: {
      requested: () => undefined,
      used: () => undefined,
      began: () => undefined,
      observed: () => undefined,
      ended: () => ended.resolve(),
      failed: (error) => ended.reject(error),
    },
  })
  life.start({ type: 'prompt', content: [text(filler('A question'))] })
  await new Promise((resolve) => setImmediate(resolve))
  const usage = { inputTokens: 10_000, outputTokens: 1, totalTokens: 10_001 }
  life.model.open?.push({
    parts: [
      { type: 'text_delta', part: 0, text: filler('An answer') },
      { type: 'usage', usage },
      { type: 'finish', reason: 'stop' },
    ],
    isLast: true,
  })
  await ended.promise
  return { remains: { ...disk.remains, checkpoint: undefined }, sessionId: life.session.id }
}

function filler(words: string): string {
  return `${words} of some length. `.repeat(8)
}
