// The least that is an agent: a model, a question, an answer. It lives in memory.
import { createAgent } from '@tapetree/agent'
import { script, scriptedModel } from '@tapetree/agent/testing'

const agent = createAgent({ model: scriptedModel(script().text('Good morning.')) })
const { outcome } = await agent.send('Good morning, who is there?')
console.log(outcome, (await agent.history()).at(-1)?.content)
await agent.close()
