import { AgentSession, onlyModel, allowAll, type RunEnd } from '@tapetree/agent'
import { expandPrompt } from '@tapetree/agent/run'
import { script, scriptedModel, type ScriptedModel } from '@tapetree/agent/testing'
import { openFileStore } from '@tapetree/session/stores/file'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { tool } from '../../golden/tool.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { verifies } from '../../support/verifies.ts'
import { finish, openAgent, pathOf, textDeltas } from './opened-agent.ts'

const long = 'some words to sum up, '.repeat(50)

/** The steps of the example: the session that was used last, or a new one, and an agent on it. */
async function openLatest(folder: string, model: ScriptedModel): Promise<AgentSession> {
  const store = openFileStore({ folder })
  onTestFinished(() => store.close())
  const latest = await store.continueRecent().catch((error: unknown) => {
    expect(error).toMatchObject({ code: 'session-not-found' })
    return store.create({ cwd: folder })
  })
  await latest.close()
  return AgentSession.open({
    store,
    sessionId: latest.id,
    models: onlyModel(model),
    tools: () => [model.tool('write')],
    gate: () => allowAll,
    hasSubagents: false,
    cwd: folder,
  })
}

verifies(
  ['agent-session/10 new-manager', 'agent-session/10 continue-recent', 'agent-session/10 new-if-there-is-none'],
  'the first time there is a new session, and the next time the one that was used last goes on',
  async () => {
    const folder = temporaryFolder()
    const model = scriptedModel(script().text('1').step().text('2'))
    const first = await openLatest(folder, model)
    await finish(first, 'one')
    await first.close()
    const second = await openLatest(folder, model)
    await finish(second, 'two')
    expect(second.session.id).toBe(first.session.id)
    expect(await pathOf(second)).toEqual(['user: one', 'assistant: 1', 'user: two', 'assistant: 2'])
    await second.close()
  },
)

verifies(
  ['agent-session/10 binds', 'agent-session/10 cwd', 'agent-session/10 close'],
  'an agent opened on a store writes there, works in its folder, and leaves the session to others when it is closed',
  async () => {
    const folder = temporaryFolder()
    const agent = await openLatest(folder, scriptedModel(script().text('Done.')))
    await finish(agent, 'Refactor main.go to use the new logger.')
    expect(agent.session.header?.cwd).toBe(folder)
    await agent.close()
    const other = openFileStore({ folder })
    onTestFinished(() => other.close())
    const session = await other.open(agent.session.id)
    expect(session.readOnlyReason).toBeUndefined()
    await session.appendSessionInfo('Logger')
    expect(session.name).toBe('Logger')
  },
)

verifies(
  ['agent-session/10 close-session'],
  'a session that was closed below the agent takes no prompt any more',
  async () => {
    const { agent } = await openAgent({ script: script().text('Done.') })
    await agent.session.close()
    await expect(agent.prompt('go')).rejects.toMatchObject({ code: 'session-closed' })
  },
)

verifies(
  ['agent-session/10 prompt', 'agent-session/10 expands', 'agent-session/10 streams'],
  'one prompt is expanded, streams its answer through the loop, and resolves when that is done',
  async () => {
    const templates = [
      {
        name: 'logger',
        description: '',
        path: '/logger.md',
        source: 'config' as const,
        body: 'Refactor $1 to use it.',
      },
    ]
    const { agent, events } = await openAgent({
      script: script().text('I ').toolCall('a', 'write').step().text('am ', 'done.'),
      expand: (typed) => Promise.resolve(expandPrompt(typed, { skills: [], templates })),
    })
    const end: RunEnd = await finish(agent, '/logger main.go')
    expect(end.outcome).toBe('completed')
    expect((await pathOf(agent))[0]).toBe('user: Refactor main.go to use it.')
    expect(textDeltas(events).join('')).toBe('I am done.')
  },
)

verifies(
  ['agent-session/10 persists', 'agent-session/10 executes-tools'],
  'the file has the whole exchange: the prompt, the call, its result and the answer',
  async () => {
    const folder = temporaryFolder()
    const model = scriptedModel(script().toolCall('a', 'write').toolResult('a', 'written').step().text('Done.'))
    const agent = await openLatest(folder, model)
    await finish(agent, 'Refactor it.')
    await agent.close()
    const log = readFileSync(join(folder, agent.session.id, 'events.jsonl'), 'utf8')
    const messages = log.split('\n').filter((line) => line.includes('"type":"message"'))
    const said = ['Refactor it.', '"tool_use"', 'written', 'Done.']
    expect(messages.map((line, index) => line.includes(said[index] ?? 'nothing'))).toEqual(Array(4).fill(true))
  },
)

verifies(['agent-session/10 prompt-failed'], 'a prompt that failed says why', async () => {
  const { agent } = await openAgent({ script: script().error('auth', 'The key is not valid.') })
  expect(await finish(agent, 'go')).toMatchObject({
    outcome: 'failed',
    reason: 'auth',
    message: 'The key is not valid.',
  })
  await expect(agent.prompt('')).rejects.toThrow('The prompt is empty.')
})

verifies(
  ['agent-session/10 steer-injects', 'agent-session/10 steer-skips', 'agent-session/10 steer-call'],
  'a steer from elsewhere while a tool runs skips the tools that are left and is answered next',
  async () => {
    const write = tool('write', async ({ callId }) => {
      if (callId === 'a') await agent.steer('Wait, check for errors first')
      return { content: `${callId} written` }
    })
    const calls = script().toolCall('a', 'write').toolCall('b', 'write').step().text('There are two.')
    const { agent } = await openAgent({ script: calls, tools: [write] })
    await finish(agent, 'Refactor it.')
    expect((await pathOf(agent)).slice(2)).toEqual([
      'tool: a a written',
      'tool: b failed: Not run: the user sent a new message first.',
      'user: Wait, check for errors first',
      'assistant: There are two.',
    ])
  },
)

verifies(
  ['agent-session/10 compact', 'agent-session/10 compact-result'],
  'a compaction by hand gives its summary and the entry from which on all is kept',
  async () => {
    const { agent, model } = await openAgent({
      script: script().text(long).step().text(long).step().text('They debugged.'),
    })
    await finish(agent, long)
    await finish(agent, 'more')
    const result = await agent.compact('Summarize the debugging steps so far.')
    if (result.type !== 'compacted') throw new Error(result.type)
    expect(result.summary).toBe('They debugged.')
    expect((await agent.session.getContextPath()).map(({ id }) => id)).toContain(result.firstKeptId)
    expect(JSON.stringify(model.requests.at(-1))).toContain('Summarize the debugging steps so far.')
  },
)
