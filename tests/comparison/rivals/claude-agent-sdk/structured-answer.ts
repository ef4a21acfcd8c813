import { createSdkMcpServer, query, tool, type Options } from '@anthropic-ai/claude-agent-sdk'
import { randomUUID } from 'node:crypto'
import { z } from 'zod'

const weather = tool('weather', 'Tell the weather in a city.', { city: z.string() }, async ({ city }) => {
  const response = await fetch(`${process.env['LAB_URL']}/weather/${city}`)
  return { content: [{ type: 'text', text: await response.text() }] }
})
const schema = z.toJSONSchema(z.object({ city: z.string(), celsius: z.number() }), { target: 'draft-7' })
const optionsOf = (more: Options): Options => ({
  model: 'claude-sonnet-5',
  mcpServers: { lab: createSdkMcpServer({ name: 'lab', tools: [weather] }) },
  tools: [],
  allowedTools: ['mcp__lab__weather'],
  settingSources: [],
  outputFormat: { type: 'json_schema', schema },
  ...more,
})
const sessionId = randomUUID()
const abortController = new AbortController()
let hasWeather = false
try {
  const options = optionsOf({ sessionId, abortController, includePartialMessages: true })
  for await (const message of query({ prompt: 'How warm is Oslo?', options })) {
    if (message.type === 'user') hasWeather = true
    if (message.type === 'stream_event' && message.event.type === 'content_block_delta' && hasWeather)
      abortController.abort()
  }
} catch (error) {
  if (!abortController.signal.aborted) throw error
}
for await (const message of query({ prompt: 'Continue.', options: optionsOf({ resume: sessionId }) }))
  if (message.type === 'result' && message.subtype === 'success') console.log(JSON.stringify(message.structured_output))
