import { createAgentSession, defineTool, ModelRuntime, SessionManager } from '@earendil-works/pi-coding-agent'
import { Type } from 'typebox'

const weather = defineTool({
  name: 'weather',
  label: 'Weather',
  description: 'Tell the weather in a city.',
  parameters: Type.Object({ city: Type.String() }),
  execute: async (_id, { city }) => {
    const response = await fetch(`${process.env['LAB_URL']}/weather/${city}`)
    return { content: [{ type: 'text', text: await response.text() }], details: {} }
  },
})
let object: unknown
const output = defineTool({
  name: 'structured_output',
  label: 'Structured output',
  description: 'Return the final answer. Use this as your last action.',
  parameters: Type.Object({ city: Type.String(), celsius: Type.Number() }),
  execute: async (_id, answer) => {
    object = answer
    return { content: [{ type: 'text', text: 'Saved.' }], details: {}, terminate: true }
  },
})
const modelRuntime = await ModelRuntime.create()
const { session } = await createAgentSession({
  modelRuntime,
  model: modelRuntime.getModel('anthropic', 'claude-sonnet-5'),
  noTools: 'builtin',
  customTools: [weather, output],
  sessionManager: SessionManager.create(process.cwd(), `${process.env['FOLDER']}/sessions`),
})
let hasWeather = false
const unsubscribe = session.subscribe((event) => {
  if (event.type === 'tool_execution_end') hasWeather = true
  if (event.type === 'message_update' && hasWeather) void session.abort()
})
await session.prompt('How warm is Oslo?')
unsubscribe()
await session.prompt('Continue.')
console.log(JSON.stringify(object))
session.dispose()
