import { appendFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { allowAll, defineTool, onlyModel, type AgentSessionOptions, type Tool } from '@tapetree/agent'
import { defaultCompaction, systemClock } from '@tapetree/agent/run'
import type { ModelRequest } from '@tapetree/agent/models'
import { script, scriptedModel, type ScriptBuilder, type ScriptedModel } from '@tapetree/agent/testing'
import { z } from 'zod'
import { randomFrom } from '../../../scripts/figure/random.ts'
import { jobOf, type Job, type NodeOptions } from './words.ts'

type Options = Pick<NodeOptions, 'node' | 'ledger' | 'seed'>

/** An agent that does the jobs of its prompts: the model speaks, a tool leaves a line in the ledger, and so on. */
export function workingAgent(options: Options): Omit<AgentSessionOptions, 'store'> {
  const random = randomFrom(options.seed)
  const about = (ms: number): number => ms * (0.5 + random())
  const model: ScriptedModel = scriptedModel([], {
    clock: systemClock,
    otherwise: (request) => {
      model.requests.length = 0 // nobody reads them, and they are many
      return answerTo(request, about)
    },
  })
  const tool = workTool(options, about)
  return {
    models: onlyModel(model),
    tools: () => [tool],
    gate: () => allowAll,
    hasSubagents: false,
    systemPrompt: () => 'You are a test.',
    settings: () => ({ compaction: { ...defaultCompaction, isEnabled: false } }),
  }
}

/** By what it is shown alone, so that a resumed run goes the same way. */
function answerTo({ messages }: ModelRequest, about: (ms: number) => number): ScriptBuilder {
  const { tag, calls, stepMs, done } = progressOf(messages)
  const said = script()
    .text(`Step ${done + 1} `)
    .wait(about(stepMs) / 2)
    .text('of this job. ')
    .wait(about(stepMs) / 2)
  return done < calls
    ? said.toolCall(`${tag}-${done + 1}`, 'work', { ms: stepMs, step: done + 1 })
    : said.text(`Done: ${tag}.`)
}

function progressOf(messages: ModelRequest['messages']): Job & { done: number } {
  let done: number | undefined
  for (const { role, content } of messages.toReversed()) {
    for (const block of content) {
      if (block.type === 'tool_use') done ??= Number(block.toolUse.id.split('-').at(-1))
      if (role !== 'user' || block.type !== 'text') continue
      const job = jobOf(block.text.content)
      if (job) return { ...job, done: done ?? 0 }
    }
  }
  throw new Error('The model has no job.')
}

/** A repeated call is seen in the ledger. */
function workTool({ node, ledger }: Options, about: (ms: number) => number): Tool {
  return defineTool({
    name: 'work',
    description: 'Does some work.',
    // The step makes each call differ from the last one: a run that repeats a call is stopped.
    schema: z.object({ ms: z.number(), step: z.number() }),
    access: () => [],
    replay: 'never',
    run: async ({ ms }, { callId, signal }) => {
      appendFileSync(ledger, `${Date.now()} ${node} ${callId}\n`)
      await setTimeout(about(ms), undefined, { signal })
      return { content: 'ok' }
    },
  })
}
