// The same agent, streamed. Errors are events, too; the last event has the whole reply.
import { createAgent } from '@tapetree/agent'
import { script, scriptedModel } from '@tapetree/agent/testing'

const model = scriptedModel(
  script()
    .text('The tide ', 'comes in ', 'at six.')
    .step()
    .error('auth', 'The key was refused.')
    .step()
    .text('It was at noon.'),
)
await using agent = createAgent({ model, systemPrompt: 'You know the tides.' })

for await (const event of agent.stream('When is high tide?')) {
  if (event.type === 'text_delta') process.stdout.write(`[${event.text}]`)
  if (event.type === 'end') console.log('', event.reply.outcome)
}

const { outcome, reason, message } = await agent.ask('And low tide?')
console.log(outcome, reason, message)

// A session answers one prompt at a time. A second one is rejected, or waits.
const first = agent.ask('And yesterday?')
await agent.ask('And tomorrow?').catch((error: Error) => console.log(error.message))
console.log((await first).text)
