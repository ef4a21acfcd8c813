import { createAgent, defineTool } from '@tapetree/agent'
import { anthropic } from '@tapetree/agent/models/anthropic'
import { openFileStore } from '@tapetree/session/stores/file'
import { z } from 'zod'

const weather = defineTool({
  name: 'weather',
  description: 'Tell the weather in a city.',
  schema: z.object({ city: z.string() }),
  run: async ({ city }) => (await fetch(`${process.env['LAB_URL']}/weather/${city}`)).text(),
})
const schema = z.object({ city: z.string(), celsius: z.number() })
const store = openFileStore({ folder: process.env['FOLDER'] ?? 'sessions' })
await using agent = createAgent({ model: anthropic({ model: 'claude-sonnet-5' }), store, tools: [weather] })
const stop = new AbortController()
for await (const event of agent.stream('How warm is Oslo?', { schema, signal: stop.signal }))
  if (event.type === 'text_delta') stop.abort()
const { object } = await agent.ask('Continue.', { schema })
console.log(JSON.stringify(object))
