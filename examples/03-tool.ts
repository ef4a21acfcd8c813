// A tool of your own. Its schema validates the input, and the model reads the errors that it throws.
import { createAgent, defineTool } from '@tapetree/agent'
import { script, scriptedModel } from '@tapetree/agent/testing'
import { z } from 'zod'

const tide = defineTool({
  name: 'tide',
  description: 'Tells when the tide is high in a port, as HH:MM.',
  schema: z.strictObject({ port: z.string().min(1).describe('The name of the port.') }),
  readOnly: true,
  replay: 'safe',
  deadlineMs: 10_000,
  run: async ({ port }, context) => {
    context.signal.throwIfAborted()
    context.observe(`looking up ${port} …`)
    if (port === 'Zurich') throw new Error('There is no sea at Zurich.')
    return '06:12'
  },
})

const model = scriptedModel(
  script()
    .toolCall('a', 'tide', { port: 'Brest' })
    .toolCall('b', 'tide', { port: 'Zurich' })
    .toolCall('c', 'tide', { harbour: 'Brest' })
    .step()
    .text('High tide at Brest is at 06:12.'),
)
await using agent = createAgent({ model, tools: [tide] })
await agent.ask('When is high tide?', {
  onToolCall: ({ name, input }) => console.log(`calls ${name}`, input),
  onToolResult: ({ content, isError }) => console.log(isError ? 'failed:' : 'said:', content),
})
