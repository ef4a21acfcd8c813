// One answer from a model of each provider package.
import assert from 'node:assert/strict'
import { createAgent, type Model } from '@tapetree/agent'
import { anthropic } from '@tapetree/agent/models/anthropic'
import { google } from '@tapetree/agent/models/google'
import { openai } from '@tapetree/agent/models/openai'
import { openaiCompatible } from '@tapetree/agent/models/openai-compatible'
import { startFakeProvider } from '@tapetree/agent/testing'

const provider = await startFakeProvider()
const apiKey = 'none'
const models: Record<string, Model> = {
  anthropic: anthropic({ model: 'claude-sonnet-5', apiKey, baseUrl: provider.baseUrl('anthropic') }),
  google: google({ model: 'gemini-3-pro', apiKey, baseUrl: provider.baseUrl('google') }),
  openai: openai({ model: 'gpt-6', apiKey, baseUrl: provider.baseUrl('openai') }),
  compatible: openaiCompatible({
    name: 'mine',
    model: 'my-model',
    apiKey,
    baseUrl: provider.baseUrl('openaiCompatible'),
  }),
}
for (const [name, model] of Object.entries(models)) {
  provider.script({ type: 'answer', content: [{ type: 'text', chunks: ['There is ', 'salt.'] }] })
  const agent = createAgent({ model })
  let answer = ''
  await agent.ask('Is there salt?', { onTextDelta: (text) => void (answer += text) })
  await agent.close()
  assert.equal(answer, 'There is salt.', name)
}
await provider.close()
console.log('everything works')
