import type { FakeApi } from '@tapetree/agent/testing'
import { composeAnthropic } from './compose-anthropic.ts'
import { composeChat } from './compose-chat.ts'
import { composeGemini } from './compose-gemini.ts'
import { composeOpenai } from './compose-openai.ts'
import type { Composer, Wish } from './composer.ts'
import type { Draw } from './draw.ts'

export interface ComposedStream {
  body: string
  /** Unknown events, blocks, items, parts and ends that the agent must have counted. */
  counted: ReadonlySet<string>
  /** The siblings of known kinds that were mixed in, for the count of what was tried. */
  unknownKinds: ReadonlySet<string>
}

/** A stream as the provider of the subject might send it. */
export function composeStream(wish: Wish, draw: Draw): ComposedStream {
  const composer = composers[wish.subject.api](wish, draw)
  const { unknownKinds: tried, counted } = composer
  return { body: composer.body(), unknownKinds: tried, counted }
}

const composers: Record<FakeApi, (wish: Wish, draw: Draw) => Composer> = {
  anthropic: composeAnthropic,
  openai: composeOpenai,
  google: composeGemini,
  openaiCompatible: composeChat,
}
