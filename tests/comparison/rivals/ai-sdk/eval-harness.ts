import { anthropic } from '@ai-sdk/anthropic'
import { tool, ToolLoopAgent, type ModelMessage } from 'ai'
import { writeFile } from 'node:fs/promises'
import { z } from 'zod'

const measure = tool({
  description: 'Measure a sample.',
  inputSchema: z.object({ sample: z.string() }),
  execute: async ({ sample }) => (await fetch(`${process.env['LAB_URL']}/samples/${sample}`)).text(),
})
const first = new ToolLoopAgent({ model: anthropic('claude-sonnet-5'), tools: { measure } })
const other = new ToolLoopAgent({ model: anthropic('claude-opus-5'), tools: { measure } })
await Promise.all(Array.from({ length: 50 }, (_, sample) => compare(`sample-${sample}`)))

/** Asks the first model, then lets the other one continue from the same measurement. */
async function compare(sample: string): Promise<void> {
  const question: ModelMessage[] = [{ role: 'user', content: `Measure ${sample} and judge it.` }]
  const answer = await first.generate({ messages: question })
  const messages = [...question, ...answer.responseMessages]
  await save(sample, messages)
  const step = messages.findLastIndex(({ role }) => role === 'tool')
  const fork: ModelMessage[] = [...messages.slice(0, step + 1), { role: 'user', content: 'Judge it.' }]
  const reply = await other.generate({ messages: fork })
  await save(`${sample}-fork`, [...fork, ...reply.responseMessages])
  console.log(JSON.stringify({ sample, first: answer.text, other: reply.text }))
}

function save(name: string, messages: ModelMessage[]): Promise<void> {
  return writeFile(`${process.env['FOLDER']}/${name}.json`, JSON.stringify(messages))
}
