// The smallest agent: a model, a question, an answer. Its session lives in memory.
import { createAgent } from '@tapetree/agent'
import { script, scriptedModel } from '@tapetree/agent/testing'

await using agent = createAgent({ model: scriptedModel(script().text('Good morning.')) })
const { text, outcome } = await agent.ask('Good morning, who is there?')
console.log(outcome, text)
