import { createSdkMcpServer, forkSession, getSessionMessages, query, tool } from '@anthropic-ai/claude-agent-sdk'
import type { Options } from '@anthropic-ai/claude-agent-sdk'
import { z } from 'zod'

const measure = tool('measure', 'Measure a sample.', { sample: z.string() }, async ({ sample }) => {
  const response = await fetch(`${process.env['LAB_URL']}/samples/${sample}`)
  return { content: [{ type: 'text', text: await response.text() }] }
})
const samples = Array.from({ length: 50 }, (_, sample) => `sample-${sample}`)
// Each session is a process of its own, so only a few run at a time.
await Promise.all(Array.from({ length: 4 }, work))

async function work(): Promise<void> {
  for (let sample = samples.shift(); sample !== undefined; sample = samples.shift()) await compare(sample)
}

/** Asks the first model, then lets the other one continue from the same measurement. */
async function compare(sample: string): Promise<void> {
  const first = await ask(`Measure ${sample} and judge it.`, { model: 'claude-sonnet-5' })
  const messages = await getSessionMessages(first.sessionId)
  const step = messages.findLast(({ type }) => type === 'user')
  const fork = await forkSession(first.sessionId, { upToMessageId: step?.uuid })
  const other = await ask('Judge it.', { model: 'claude-opus-5', resume: fork.sessionId })
  console.log(JSON.stringify({ sample, fork: fork.sessionId, first: first.text, other: other.text }))
}

async function ask(prompt: string, more: Options): Promise<{ text: string; sessionId: string }> {
  const options = {
    mcpServers: { lab: createSdkMcpServer({ name: 'lab', tools: [measure] }) },
    tools: [],
    allowedTools: ['mcp__lab__measure'],
    settingSources: [],
    ...more,
  }
  for await (const message of query({ prompt, options }))
    if (message.type === 'result' && message.subtype === 'success')
      return { text: message.result, sessionId: message.session_id }
  throw new Error('There was no answer.')
}
