import { script } from '@tapetree/agent/testing'
import { openFileStore } from '@tapetree/session/stores/file'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { Stage } from '../../golden/stage.ts'
import { tool } from '../../golden/tool.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { verifies } from '../../support/verifies.ts'
import { finish, openAgent, pathOf, type AgentGiven, type OpenedAgent } from './opened-agent.ts'

const long = 'some words to sum up, '.repeat(50)

/** An agent whose log is a file, and what that file says at this moment. */
async function openInFiles(given: AgentGiven): Promise<OpenedAgent & { onDisk: () => string[] }> {
  const folder = temporaryFolder()
  const store = openFileStore({ folder })
  onTestFinished(() => store.close())
  const opened = await openAgent({ ...given, store })
  const onDisk = (): string[] => {
    const path = join(folder, opened.agent.session.id, 'events.jsonl')
    const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1)
    return lines.map((line) => {
      const { type, message } = JSON.parse(line) as { type: string; message?: { role: string } }
      return message ? `${type} ${message.role}` : type
    })
  }
  return { ...opened, onDisk }
}

verifies(
  ['agent-session/9 as-they-occur', 'agent-session/9 real-time', 'agent-session/9 message-end'],
  'in the middle of a run the file has what was said, what was called and what came of it so far',
  async () => {
    const seen: string[][] = []
    const spoken = (): string[] => opened.onDisk().filter((line) => line.startsWith('message'))
    const look = tool('look', () => {
      seen.push(spoken())
      return { content: 'ok' }
    })
    const steps = script()
      .do(() => seen.push(spoken()))
      .toolCall('a', 'look')
      .step()
      .do(() => seen.push(spoken()))
      .text('ok')
    const opened = await openInFiles({ script: steps, tools: [look] })
    await finish(opened.agent, 'go')
    expect(seen).toEqual([
      ['message user'],
      ['message user', 'message assistant'],
      ['message user', 'message assistant', 'message tool'],
    ])
    expect(opened.onDisk()).toContain('run_end')
  },
)

verifies(
  ['agent-session/9 compaction', 'agent-session/9 label'],
  'a summary and a bookmark are in the file when the call that made them returns',
  async () => {
    const { agent, onDisk } = await openInFiles({
      script: script().text(long).step().text(long).step().text('A summary.'),
    })
    await finish(agent, long)
    await finish(agent, 'more')
    await agent.compact()
    expect(onDisk().filter((line) => line === 'compaction')).toHaveLength(1)
    await agent.setLabel(agent.session.leafId ?? '', 'here')
    expect(onDisk().filter((line) => line === 'label')).toHaveLength(1)
  },
)

verifies(
  ['agent-session/9 crash'],
  'a process that dies in mid-turn leaves a session that opens without damage, and that goes on where it was',
  async () => {
    const stage = new Stage(temporaryFolder())
    onTestFinished(() => stage.clear())
    const answer = script()
      .text('I look at ', 'the file.')
      .do(() => stage.untilDrafted('the file'))
      .do(() => stage.die())
    const agent = await stage.open({ script: answer })
    await stage.crash(agent.prompt('Look.'))
    await stage.resume({ script: script().text('It is empty.') })
    expect([stage.session.damage, stage.session.openRun]).toEqual([[], null])
    expect(await stage.agent.path()).toEqual(['user: Look.', 'assistant: It is empty.'])
    expect(await stage.agent.lineTypes()).toContain('attempt')
  },
)

verifies(
  ['agent-session/9 in-sync'],
  'what the model is sent is what the log says, also after somebody moved to another entry',
  async () => {
    const { agent, model } = await openInFiles({ script: script().text('1').step().text('2').step().text('3') })
    await finish(agent, 'one')
    const at = agent.session.leafId
    await finish(agent, 'two')
    await agent.navigate(at)
    await finish(agent, 'another two')
    const { messages } = await agent.session.getContext()
    const sent = model.requests.at(-1)?.messages
    expect(sent).toEqual(messages.slice(0, -1).map(({ message }) => message))
    expect(await pathOf(agent)).toEqual(['user: one', 'assistant: 1', 'user: another two', 'assistant: 3'])
  },
)

verifies(
  ['agent-session/9 resumed'],
  'a session that is opened again sends what it would have sent, with the model and the thinking level it had',
  async () => {
    const { agent, store, model } = await openInFiles({ script: script().text('1').step().text('2') })
    await agent.setThinkingLevel('medium')
    await finish(agent, 'one')
    await agent.close()
    const { agent: again } = await openAgent({ store, sessionId: agent.session.id, scripted: model })
    expect(again.state()).toMatchObject({ model: { modelId: 'scripted-1' }, thinkingLevel: 'medium' })
    await finish(again, 'two')
    const [first, second] = model.requests
    expect(second).toMatchObject({ system: first?.system, tools: first?.tools, thinkingLevel: 'medium' })
    expect(second?.messages.slice(0, 1)).toEqual(first?.messages)
    expect(second?.messages).toHaveLength(3)
  },
)
