import { AgentSession, onlyModel, allowAll } from '@tapetree/agent'
import { Requests } from '@tapetree/agent/permissions'
import { script, scriptedModel } from '@tapetree/agent/testing'
import { text, type Session } from '@tapetree/session'
import type { PlaybackEvent, PlaybackEventType } from '@tapetree/session/view'
import { openFileStore } from '@tapetree/session/stores/file'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, vi } from 'vitest'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { verifies } from '../../support/verifies.ts'

interface Recorded {
  session: Session
  folder: string
}

async function record(): Promise<Recorded> {
  const root = temporaryFolder()
  const session = await openFileStore({ folder: root }).create({ cwd: '/project', name: 'Tidy up' })
  const { localFolder: folder = '' } = session
  return { session, folder }
}

const typesIn = async (session: Session): Promise<PlaybackEventType[]> =>
  (await session.play()).events().map(({ type }) => type)

verifies(
  ['session-management/recording start', 'session-management/storage places', 'session-management/event session_start'],
  'a session that begins has a folder of its own with its log, and beside it the copies that are made from it',
  async () => {
    const { session, folder } = await record()
    expect(folder.endsWith(session.id)).toBe(true)
    expect(readdirSync(folder)).toContain('events.jsonl')
    await session.submit('later')
    await session.close()
    expect(readdirSync(folder)).toEqual(expect.arrayContaining(['events.jsonl', 'metadata.json', 'queue.json']))
    const [first] = await eventsIn(folder)
    expect(first).toMatchObject({ type: 'session_start', cwd: '/project' })
  },
)

verifies(
  [
    'session-management/recording prompt',
    'session-management/recording message',
    'session-management/recording tool-call',
  ],
  'what the user says, what the agent answers and what it calls are recorded as they happen',
  async () => {
    const store = openFileStore({ folder: temporaryFolder() })
    const model = scriptedModel(script().text('I look.').toolCall('a', 'look').step().text('Done.'))
    await using agent = await AgentSession.open({
      store,
      models: onlyModel(model),
      tools: () => [model.tool('look')],
      hasSubagents: false,
      gate: () => allowAll,
      cwd: '/',
    })
    const outcome = await agent.prompt('Look at it.')
    if (outcome.type === 'started') await outcome.run.done
    const types = await typesIn(agent.session)
    expect(types.filter((type) => type !== 'session_start')).toEqual([
      'user_prompt',
      'agent_message',
      'tool_call',
      'tool_call_update',
      'tool_call_update',
      'agent_message',
    ])
  },
)

verifies(
  ['session-management/recording permission', 'session-management/event permission'],
  'a permission is recorded when it is asked for, and again with its outcome',
  async () => {
    const { session } = await record()
    const requests = new Requests(session)
    const options = [{ optionId: 'yes', label: 'Yes', kind: 'allow_once' as const }]
    const asked = requests.ask({ tool: 'bash', title: 'Run rm', options }, new AbortController().signal)
    await vi.waitFor(() => expect(session.pendingPermissions).toHaveLength(1))
    const [pending] = session.pendingPermissions
    await requests.answer({ requestId: pending?.requestId ?? '', outcome: 'allowed', optionId: 'yes' })
    await asked
    expect((await session.play()).events(['permission'])).toMatchObject([
      { status: 'requested', tool: 'bash' },
      { status: 'allowed', optionId: 'yes' },
    ])
  },
)

verifies(
  ['session-management/recording end', 'session-management/event session_end'],
  'a session that ends says so and why, and is still there to be read',
  async () => {
    const { session, folder } = await record()
    await session.append({ type: 'session_end', sessionEnd: { reason: 'done for today' } })
    await session.close()
    expect((await eventsIn(folder)).at(-1)).toMatchObject({ type: 'session_end', reason: 'done for today' })
  },
)

verifies(
  ['session-management/recording events-file', 'session-management/recording metadata-file'],
  'each event is one more line of events.jsonl, none before it changes, and metadata.json is made from them',
  async () => {
    const { session, folder } = await record()
    const before = readFileSync(join(folder, 'events.jsonl'), 'utf8')
    await session.appendMessage('user', [text('hello')])
    const after = readFileSync(join(folder, 'events.jsonl'), 'utf8')
    expect(after.startsWith(before)).toBe(true)
    expect(after.slice(before.length).trimEnd().split('\n')).toHaveLength(1)
    await session.saveDerived()
    expect(JSON.parse(readFileSync(join(folder, 'metadata.json'), 'utf8'))).toMatchObject({ name: 'Tidy up' })
    await session.close()
  },
)

verifies(
  [
    'session-management/playback reads',
    'session-management/playback metadata',
    'session-management/playback navigation',
  ],
  'a player reads the events of a session, knows what it is called, and goes on, to any place and back to the start',
  async () => {
    const { session } = await record()
    await session.appendMessage('user', [text('one')])
    await session.appendMessage('assistant', [text('two')])
    expect(session.info).toMatchObject({ name: 'Tidy up' })
    const player = await session.play()
    expect([player.next()?.type, player.next()?.type]).toEqual(['session_start', 'user_prompt'])
    expect(player.seek({ index: player.length - 1 })).toMatchObject({ type: 'agent_message', text: 'two' })
    player.reset()
    expect(player.next()).toMatchObject({ type: 'session_start' })
    await session.close()
  },
)

verifies(
  [
    'session-management/event user_prompt',
    'session-management/event agent_message',
    'session-management/event agent_thought',
  ],
  'words of the user, of the agent and of its reasoning are events of three types',
  async () => {
    const { session } = await record()
    await session.appendMessage('user', [text('Why?')])
    await session.appendMessage('assistant', [{ type: 'reasoning', reasoning: { text: 'Hm.' } }, text('Because.')])
    const player = await session.play()
    expect(player.events(['user_prompt'])).toMatchObject([{ text: 'Why?' }])
    expect(player.events(['agent_thought'])).toMatchObject([{ text: 'Hm.' }])
    expect(player.events(['agent_message'])).toMatchObject([{ text: 'Because.' }])
    await session.close()
  },
)

verifies(
  ['session-management/event tool_call', 'session-management/event tool_call_update'],
  'a call is an event, and so is each change of how it stands: running, completed, failed',
  async () => {
    const { session } = await record()
    await session.appendMessage('assistant', [
      { type: 'tool_use', toolUse: { id: 'a', name: 'read', input: { path: 'x' } } },
    ])
    await session.append({ type: 'tool_start', toolStart: { callId: 'a', runId: 'r', name: 'read' } })
    await session.appendMessage('tool', [
      { type: 'tool_result', toolResult: { toolUseId: 'a', isError: true, content: 'no' } },
    ])
    const player = await session.play()
    expect(player.events(['tool_call'])).toMatchObject([{ callId: 'a', name: 'read', input: { path: 'x' } }])
    expect(player.events(['tool_call_update'])).toMatchObject([{ status: 'running' }, { status: 'failed' }])
    await session.close()
  },
)

verifies(
  ['session-management/event plan', 'session-management/event file_read', 'session-management/event file_write'],
  'plans and files that are read and written are events with what they are about',
  async () => {
    const { session } = await record()
    await session.append({ type: 'plan', plan: { items: [{ text: 'Tidy', status: 'pending' }] } })
    await session.append({ type: 'file_read', fileRead: { path: '/a', size: 3 } })
    await session.append({ type: 'file_write', fileWrite: { path: '/b', size: 4 } })
    const player = await session.play()
    expect(player.events(['plan'])).toMatchObject([{ items: [{ text: 'Tidy' }] }])
    expect(player.events(['file_read'])).toMatchObject([{ path: '/a', size: 3 }])
    expect(player.events(['file_write'])).toMatchObject([{ path: '/b', size: 4 }])
    await session.close()
  },
)

verifies(['session-management/event error'], 'an error is an event with its message', async () => {
  const { session } = await record()
  await session.append({ type: 'error', error: { message: 'The network is gone.', kind: 'network' } })
  expect((await session.play()).events(['error'])).toMatchObject([{ message: 'The network is gone.', kind: 'network' }])
  await session.close()
})

/** As somebody reads them who has only the folder. */
async function eventsIn(folder: string): Promise<PlaybackEvent[]> {
  await using session = await openFileStore({ folder: temporaryFolder() }).load(folder, { readOnly: true })
  return (await session.play()).events()
}
