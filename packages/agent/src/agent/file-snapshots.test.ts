import { memoryStore } from '@tapetree/session'
import { afterAll, expect, test } from 'vitest'
import { script, scriptedModel } from '../testing/scripted-model.ts'
import { TestFolder } from '../testing/test-folder.ts'
import { dismissSupervisor } from '../tools/commands/supervisor-process.ts'
import { allowAll } from '../tools/tool.ts'
import { AgentSession } from './agent-session.ts'
import { onlyModel } from './model-choice.ts'

afterAll(() => dismissSupervisor())

test('what a command of the agent changed can be put back', async () => {
  await using folder = await TestFolder.make({ 'a.txt': 'a\n', 'gone.txt': 'here\n' })
  await using stores = await TestFolder.make()
  const command = 'rm gone.txt; echo b >> a.txt; mkdir new; echo n > new/n'
  const model = scriptedModel(script().toolCall('c1', 'bash', { command }).step().text('Done.'))
  const agent = await AgentSession.open({
    store: memoryStore(),
    models: onlyModel(model),
    gate: () => allowAll,
    hasSubagents: false,
    cwd: folder.path,
    snapshotsFolder: stores.path,
  })
  try {
    const reply = await agent.ask('change the files')
    expect(reply.outcome).toBe('completed')
    expect(await folder.read('a.txt')).toBe('a\nb\n')
    const path = await agent.session.getContextPath()
    const message = path.find((entry) => entry.type === 'message')
    const prepared = await agent.files?.prepare(message?.id ?? null)
    expect(prepared?.restored.map(({ path }) => path)).toEqual(['a.txt', 'gone.txt', 'new/n'])
    if (prepared) await agent.files?.restore(prepared)
    expect(await folder.read('a.txt')).toBe('a\n')
    expect(await folder.read('gone.txt')).toBe('here\n')
    await expect(folder.read('new/n')).rejects.toThrow('ENOENT')
  } finally {
    await agent.close()
  }
})

test('what a subagent changed counts as changed by the agent, and what the user changed meanwhile does not', async () => {
  await using folder = await TestFolder.make({ 'a.txt': 'a\n', 'user.txt': 'u\n' })
  await using stores = await TestFolder.make()
  const task = { description: 'Change a file', prompt: 'Change it.' }
  const model = scriptedModel(
    script()
      .toolCall('c1', 'task', task)
      .step()
      .toolCall('c2', 'bash', { command: 'echo b >> a.txt' })
      .step()
      .toolCall('c3', 'bash', { command: 'touch new.txt' })
      .step()
      .text('Changed.')
      .step()
      .text('Done.'),
  )
  const agent = await AgentSession.open({
    store: memoryStore(),
    models: onlyModel(model),
    gate: () => ({
      admit: async ({ callId }) => {
        if (callId.endsWith('/c3')) await folder.write('user.txt', 'mine\n')
        return { type: 'allowed' }
      },
    }),
    cwd: folder.path,
    snapshotsFolder: stores.path,
  })
  try {
    await agent.ask('use a subagent')
    const message = (await agent.session.getContextPath()).find((entry) => entry.type === 'message')
    const prepared = await agent.files?.prepare(message?.id ?? null)
    expect(prepared?.restored.map(({ path }) => path)).toEqual(['a.txt', 'new.txt'])
    expect(prepared?.kept.map(({ path }) => path)).toEqual(['user.txt'])
  } finally {
    await agent.close()
  }
})
