import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { allTools } from '@tapetree/agent'
import { buildSystemPrompt } from '@tapetree/agent/run'
import { createModelRegistry } from '@tapetree/agent/models'
import { script, scriptedModel, startFakeProvider } from '@tapetree/agent/testing'
import { expect, onTestFinished } from 'vitest'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { verifies } from '../../support/verifies.ts'
import { agentWith } from './agents.ts'

verifies(
  ['agent-module/example create', 'agent-module/example default-prompt', 'agent-module/example tools'],
  'an agent with all tools and the default prompt offers both to its model, and its tools work in its folder',
  async () => {
    const cwd = temporaryFolder()
    writeFileSync(join(cwd, 'tree.txt'), 'an oak\n')
    const model = scriptedModel(script().toolCall('1', 'read', { path: 'tree.txt' }).step().text('An oak.'))
    const environment = { platform: process.platform, cwd: cwd, shell: 'bash' }
    const systemPrompt = buildSystemPrompt({ environment, instructions: [], skills: [] })
    const agent = agentWith({ model, tools: allTools(), systemPrompt, cwd })
    const results: unknown[] = []
    await agent.ask('Which tree?', { onToolResult: ({ content }) => results.push(content) })
    expect(results).toEqual([expect.stringContaining('an oak')])
    expect(model.requests[0]?.system).toBe(systemPrompt)
    expect(model.requests[0]?.tools.map(({ name }) => name).toSorted()).toEqual(
      allTools()
        .map(({ name }) => name)
        .toSorted(),
    )
  },
)

verifies(
  ['agent-module/example send', 'agent-module/example on-text-delta', 'agent-module/example on-tool-call'],
  'the example of use: a prompt with two callbacks, which hear the text and the call',
  async () => {
    const model = scriptedModel(script().text('I look. ').toolCall('1', 'look').step().text('A tree.'))
    const agent = agentWith({ model, tools: [model.tool('look')] })
    const screen: string[] = []
    await agent.ask('What is there?', {
      onTextDelta: (text) => {
        screen.push(text)
      },
      onToolCall: ({ name }) => {
        screen.push(`[${name}] `)
      },
    })
    expect(screen.join('')).toBe('I look. [look] A tree.')
  },
)

verifies(
  ['agent-module/example model-from-builder', 'agent-module/example model'],
  'a model that is opened from the registry, by its name and with the key from the environment, answers',
  async () => {
    const provider = await startFakeProvider()
    onTestFinished(() => provider.close())
    provider.script({ type: 'answer', content: [{ type: 'text', chunks: ['Hi!'] }] })
    const key = ['fake', 'key', 'of', 'a', 'test'].join('-')
    const registry = createModelRegistry({
      env: { ANTHROPIC_API_KEY: key },
      providers: { anthropic: { baseUrl: provider.baseUrl('anthropic') } },
    })
    const { model } = await registry.open('anthropic/claude-opus-5')
    let answer = ''
    await agentWith({ model }).ask('Hello', { onTextDelta: (text) => void (answer += text) })
    expect({ answer, model: model.id }).toEqual({ answer: 'Hi!', model: 'claude-opus-5' })
    expect(provider.requests[0]?.headers).toMatchObject({ 'x-api-key': key })
    await expect(createModelRegistry({ env: {} }).open('anthropic/claude-opus-5')).rejects.toThrow('ANTHROPIC_API_KEY')
  },
)
