// The same agent, heard while it speaks. What goes wrong is told as well.
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
const agent = createAgent({ model, systemPrompt: 'You know the tides.' })

const callbacks = {
  onTextDelta: (text: string) => process.stdout.write(`[${text}]`),
  onComplete: () => console.log(' complete'),
  onError: (error: Error) => console.log(`error: ${error.message}`),
}
await agent.send('When is high tide?', callbacks)

const { outcome, reason } = await agent.send('And low tide?', callbacks)
console.log(outcome, reason)

// One prompt at a time: whoever wants to steer or to queue takes an AgentSession, two steps further on.
const sending = agent.send('And yesterday?', callbacks)
await agent.send('And tomorrow?').catch((error: Error) => console.log(error.message))
await sending
await agent.close()
