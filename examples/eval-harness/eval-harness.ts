import { createAgent, defineTool } from '@tapetree/agent'
import { anthropic } from '@tapetree/agent/models/anthropic'
import { openFileStore } from '@tapetree/session/stores/file'
import { z } from 'zod'

const measure = defineTool({
  name: 'measure',
  description: 'Measure a sample.',
  schema: z.object({ sample: z.string() }),
  run: async ({ sample }) => (await fetch(`${process.env['LAB_URL']}/samples/${sample}`)).text(),
})
const store = openFileStore({ folder: process.env['FOLDER'] ?? 'sessions' })
await using first = createAgent({ model: anthropic({ model: 'claude-sonnet-5' }), store, tools: [measure] })
await using other = createAgent({ model: anthropic({ model: 'claude-opus-5' }), store, tools: [measure] })
await Promise.all(Array.from({ length: 50 }, (_, sample) => compare(`sample-${sample}`)))

/** Asks the first model, then lets the other one continue from the same measurement. */
async function compare(sample: string): Promise<void> {
  const { text } = await first.ask(`Measure ${sample} and judge it.`, { sessionId: sample })
  const { session } = await first.session(sample)
  const step = (await session.getContextPath()).findLast(
    (entry) => entry.type === 'message' && entry.message.role === 'tool',
  )
  const fork = await session.createBranchedSession(step?.id ?? '')
  const reply = await other.ask('Judge it.', { sessionId: fork })
  console.log(JSON.stringify({ sample, fork, first: text, other: reply.text }))
}
