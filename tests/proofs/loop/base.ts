import { text } from '@tapetree/session'
import type { ModelPart } from '../../../packages/agent/src/models/model.ts'
import { DrivenTools } from './driven-tools.ts'
import { DyingDisk, emptyDisk } from './dying-disk.ts'
import { Life } from './life.ts'
import type { Base } from './scene.ts'

/** A session with some history in it: there is something to compact, and a call with its result among it. */
export async function makeBase(): Promise<Base> {
  const disk = new DyingDisk(emptyDisk)
  const tools = new DrivenTools({ isDeaf: false, hasDeadline: false })
  const ended = Promise.withResolvers<void>()
  const life = await Life.open({
    disk,
    tools,
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
  let inputTokens = 9_990
  const answer = async (...parts: ModelPart[]): Promise<void> => {
    await atRest()
    inputTokens++
    const usage = { inputTokens, outputTokens: 1, totalTokens: inputTokens + 1 }
    const spoken: ModelPart = { type: 'text_delta', part: 0, text: filler('An answer') }
    const reason = parts.length > 0 ? 'tool-calls' : 'stop'
    life.model.open?.push({
      parts: [spoken, ...parts, { type: 'usage', usage }, { type: 'finish', reason }],
      isLast: true,
    })
  }

  life.start({ type: 'prompt', content: [text(filler('A question'))] })
  await answer({ type: 'tool_call', part: 1, callId: 'c0', name: 'look', input: '{}' })
  await atRest()
  tools.end('c0', { content: filler('A result') })
  await answer()
  await ended.promise
  return { remains: { ...disk.remains, checkpoint: [] }, sessionId: life.session.id }
}

/** Everything that can happen by itself has happened. */
function atRest(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

function filler(words: string): string {
  return `${words} of some length. `.repeat(8)
}
