import { setImmediate, setTimeout } from 'node:timers/promises'
import { defineTool, type Tool } from '@tapetree/agent'
import { systemClock } from '@tapetree/agent/run'
import type { ModelRequest } from '@tapetree/agent/models'
import { script, scriptedModel, type ScriptBuilder, type ScriptedModel } from '@tapetree/agent/testing'
import { z } from 'zod'

/** Holds the model between two words, so that a history decides what happens there. */
export class Gates {
  #closed: PromiseWithResolvers<void> | undefined
  readonly #random: () => number

  constructor(random: () => number) {
    this.#random = random
  }

  close(): void {
    this.#closed ??= Promise.withResolvers()
  }

  open(): void {
    this.#closed?.resolve()
    this.#closed = undefined
  }

  async pass(): Promise<void> {
    await this.#closed?.promise
    const random = this.#random()
    if (random < 0.5) await setImmediate()
    else if (random < 0.8) await setTimeout(random * 3)
  }
}

export interface TalkOptions {
  random: () => number
  gates: Gates
  /** Long answers, so that sockets fill up. */
  isLong?: boolean
}

const words = ['Let me see. ', 'A smile: 😀, ', 'two flags 🇺🇳🇳🇵 ', 'and that is it. ', '漢字 ', 'On we go, ']

/** A model that says something now and calls a tool then, as a seed has it. */
export function talkativeModel(options: TalkOptions): ScriptedModel {
  let calls = 0
  return scriptedModel([], { clock: systemClock, otherwise: answer })

  function answer({ messages }: ModelRequest): ScriptBuilder {
    const { random, gates, isLong = false } = options
    const said = script()
    if (random() < 0.2) said.reasoning('Thinking it over.')
    const count = 1 + Math.floor(random() * 4)
    for (let index = 0; index < count; index++) {
      const word = words[Math.floor(random() * words.length)] as string
      said.text(isLong ? word.repeat(2000) : word).do(() => gates.pass())
    }
    const isAnswer = messages.at(-1)?.role === 'tool'
    if (random() < (isAnswer ? 0.2 : 0.5)) {
      const together = random() < 0.2 ? 2 : 1
      for (let index = 0; index < together; index++) {
        const tool = random() < 0.7 ? 'act' : 'look'
        said.toolCall(`call-${Math.floor(random() * 1e9)}-${++calls}`, tool, { n: calls })
      }
    } else if (random() < 0.05) said.error('invalid-request')
    return said
  }
}

/** One tool that has to be allowed, and one that has not. */
export function toolsThat(run: (callId: string) => Promise<void>): Tool[] {
  return [
    defineTool({
      name: 'act',
      description: 'Does something.',
      schema: z.looseObject({}),
      access: () => [{ type: 'tool', name: 'act', readOnly: false }],
      run: async (_, context) => {
        context.observe('working')
        await run(context.callId)
        return { content: 'done' }
      },
    }),
    defineTool({
      name: 'look',
      description: 'Looks at something.',
      schema: z.looseObject({}),
      access: () => [],
      readOnly: true,
      run: () => Promise.resolve({ content: 'seen' }),
    }),
  ]
}
