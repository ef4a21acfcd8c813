import { script, scriptedModel } from '@tapetree/agent/testing'
import { memoryStore, text, type Session } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { expect, onTestFinished } from 'vitest'
import { saidIn } from '../../support/said.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { verifies } from '../../support/verifies.ts'
import { agentWith, brief, openAgent, say, toolThat } from './agents.ts'

const always = (words: string) => scriptedModel([], { otherwise: () => script().text(words) })

verifies(
  ['agent-module/sessions across-exchanges', 'agent-module/lifecycle sends'],
  'every exchange adds its messages to the session, and the next one knows them',
  async () => {
    const model = always('yes')
    const agent = agentWith({ model })
    for (const prompt of ['one', 'two', 'three']) await agent.ask(prompt)
    expect(model.requests.map(({ messages }) => messages.length)).toEqual([1, 3, 5])
    expect(brief(await agent.history()).filter((line) => line.startsWith('user'))).toEqual([
      'user: one',
      'user: two',
      'user: three',
    ])
  },
)

verifies(
  ['agent-module/sessions limit', 'agent-module/sessions trimmed'],
  'the newest hundred messages are shown, and the older ones are still in the log',
  async () => {
    const agent = agentWith({ model: always('yes') })
    await using session = await agent.store.create({ id: 'long' })
    for (let i = 1; i <= 60; i++) {
      await session.appendMessage('user', [text(`question ${i}`)])
      await session.appendMessage('assistant', [text(`answer ${i}`)])
    }
    await agent.ask('last', { sessionId: 'long' })
    const shown = brief(await agent.history('long'))
    expect({ length: shown.length, first: shown[0], last: shown.at(-1) }).toEqual({
      length: 100,
      first: 'user: question 12',
      last: 'assistant: yes',
    })
    expect((await session.getContext()).messages).toHaveLength(122)
  },
)

verifies(
  ['agent-module/session id', 'agent-module/session title', 'agent-module/session messages'],
  'a session has an id of its own, a title and its messages',
  async () => {
    const store = memoryStore()
    const [first, second] = [await store.create({ name: 'Trees' }), await store.create()]
    await first.appendMessage('user', [text('hello')])
    expect([first.name, second.name, first.id === second.id]).toEqual(['Trees', '', false])
    expect([await saidIn(first), await saidIn(second)]).toEqual([['user: hello'], []])
    expect((await store.list()).sessions.find(({ id }) => id === first.id)).toMatchObject({ messageCount: 1 })
  },
)

verifies(
  ['agent-module/session created-at', 'agent-module/session updated-at'],
  'a session says when it was made and when something was last said in it',
  async () => {
    let now = new Date('2026-01-01T00:00:00Z')
    const store = memoryStore({ now: () => now })
    const session = await store.create()
    now = new Date('2026-01-02T00:00:00Z')
    await session.appendMessage('user', [text('hello')])
    now = new Date('2026-01-03T00:00:00Z')
    await session.appendSessionInfo('Named later')
    expect((await store.list()).sessions).toMatchObject([
      { created: '2026-01-01T00:00:00.000Z', modified: '2026-01-02T00:00:00.000Z', name: 'Named later' },
    ])
  },
)

verifies(
  ['agent-module/store new', 'agent-module/store sessions', 'agent-module/store list'],
  'a new store is empty, and lists every session that is made in it',
  async () => {
    const store = memoryStore()
    expect((await store.list()).sessions).toEqual([])
    const made = [await store.create({ name: 'one' }), await store.create({ name: 'two' })]
    const { sessions } = await store.list()
    expect(sessions.map(({ id, name }) => `${id} ${name}`).toSorted()).toEqual(
      made.map(({ id, name }) => `${id} ${name}`).toSorted(),
    )
    expect((await memoryStore().list()).sessions).toEqual([])
  },
)

verifies(
  ['agent-module/store create', 'agent-module/store current'],
  'a new session is the current one from then on, and what is said goes there',
  async () => {
    const store = memoryStore()
    const agent = await openAgent(always('yes'), { store })
    const first = agent.session.id
    const made = await agent.newSession()
    expect({ current: agent.session.id, isNew: made !== first }).toEqual({ current: made, isNew: true })
    await say(agent, 'hello')
    const counts = new Map((await store.list()).sessions.map(({ id, messageCount }) => [id, messageCount]))
    expect([counts.get(first), counts.get(made)]).toEqual([0, 2])
    await using named = await store.create({ name: 'Trees' })
    expect(named.name).toBe('Trees')
  },
)

verifies(
  ['agent-module/store get', 'agent-module/agent sessions'],
  'the store of an agent has its sessions by their ids: whoever opens one sees what was said, and what is said later',
  async () => {
    const agent = agentWith({ model: always('yes') })
    await agent.ask('one', { sessionId: 'a' })
    await using session = await agent.store.open('a')
    expect(await saidIn(session)).toEqual(['user: one', 'assistant: yes'])
    await agent.ask('two', { sessionId: 'a' })
    expect(await saidIn(session)).toHaveLength(4)
    await expect(agent.store.open('nobody')).rejects.toMatchObject({ code: 'session-not-found' })
  },
)

verifies(
  ['agent-module/store current-session', 'agent-module/lifecycle auto-creates', 'agent-module/lifecycle starts-empty'],
  'there is no session until an agent needs one; the one that is made is named by its first prompt',
  async () => {
    const store = memoryStore()
    expect((await store.list()).sessions).toEqual([])
    const agent = await openAgent(always('yes'), { store })
    expect((await store.list()).sessions).toMatchObject([{ id: agent.session.id, name: '', messageCount: 0 }])
    const isNamed = new Promise<string>((resolve) => {
      agent.subscribe((event) => {
        if (event.type === 'line' && event.committed.line.type === 'session_info') {
          resolve(event.committed.line.sessionInfo.name)
        }
      })
    })
    await say(agent, 'Plant a tree')
    expect(await isNamed).toBe('Plant a tree')
    const again = await openAgent(always('yes'), { store, sessionId: agent.session.id })
    expect(await saidIn(again.session)).toEqual(['user: Plant a tree', 'assistant: yes'])
  },
)

verifies(
  ['agent-module/store set-current'],
  'going to another session makes it the current one; where there is none, the agent stays where it is',
  async () => {
    const store = memoryStore()
    const agent = await openAgent(always('yes'), { store })
    const first = agent.session.id
    await say(agent, 'in the first')
    const second = await agent.newSession()
    await agent.switchSession(first)
    expect(await saidIn(agent.session)).toEqual(['user: in the first', 'assistant: yes'])
    await expect(agent.switchSession('nobody')).rejects.toMatchObject({ code: 'session-not-found' })
    expect(agent.state().sessionId).toBe(first)
    await agent.switchSession(second)
    await say(agent, 'in the second')
    expect(await saidIn(agent.session)).toEqual(['user: in the second', 'assistant: yes'])
  },
)

verifies(
  ['agent-module/store delete', 'agent-module/lifecycle removed'],
  'a session that is deleted is neither listed nor found, and can be had back; one that is open is refused',
  async () => {
    const store = memoryStore()
    const session = await store.create({ id: 'old' })
    await expect(store.delete('old')).rejects.toMatchObject({ code: 'session-owned' })
    await session.close()
    await store.delete('old')
    expect((await store.list()).sessions).toEqual([])
    await expect(store.open('old')).rejects.toMatchObject({ code: 'session-not-found' })
    await expect(store.delete('nobody')).rejects.toMatchObject({ code: 'session-not-found' })
    await store.restore('old')
    expect((await store.list()).sessions).toMatchObject([{ id: 'old' }])
  },
)

verifies(
  ['agent-module/store add-message', 'agent-module/store get-messages'],
  'a message that is added is the last of its session, and of no other',
  async () => {
    const store = memoryStore()
    const [session, other] = [await store.create(), await store.create()]
    await session.appendMessage('user', [text('one')])
    await session.appendMessage('assistant', [text('two')])
    expect([await saidIn(session), await saidIn(other)]).toEqual([['user: one', 'assistant: two'], []])
    await session.close()
    await expect(session.appendMessage('user', [text('late')])).rejects.toMatchObject({ code: 'session-closed' })
  },
)

verifies(
  ['agent-module/store copy'],
  'whoever changes the messages that they were given changes nothing of the session',
  async () => {
    const agent = agentWith({ model: always('yes') })
    await agent.ask('hello')
    const history = await agent.history()
    history.pop()
    history.push({ role: 'user', content: [text('forged')] })
    for (const message of history) message.content = [text('forged')]
    expect(brief(await agent.history())).toEqual(['user: hello', 'assistant: yes'])
    await using session = await agent.store.open('default')
    const { messages } = await session.getContext()
    messages.length = 0
    expect(await saidIn(session)).toEqual(['user: hello', 'assistant: yes'])
  },
)

verifies(
  ['agent-module/store clear-messages', 'agent-module/store update-title'],
  'a session can be cleared and named anew, and keeps its id and its place in the list',
  async () => {
    const store = memoryStore()
    const session = await store.create({ name: 'First' })
    await session.appendMessage('user', [text('one')])
    await session.branch(null)
    await session.appendSessionInfo('Second')
    expect({ said: await saidIn(session), name: session.name }).toEqual({ said: [], name: 'Second' })
    expect((await store.list()).sessions).toMatchObject([{ id: session.id, name: 'Second' }])
  },
)

verifies(
  ['agent-module/store lock'],
  'any number of callers add messages at once, and each message is there once',
  async () => {
    const store = memoryStore()
    const session = await store.create()
    const openers: Session[] = await Promise.all(Array.from({ length: 4 }, () => store.open(session.id)))
    const words = Array.from({ length: 100 }, (_, i) => `message ${i}`)
    await Promise.all(words.map((word, i) => (openers[i % 4] ?? session).appendMessage('user', [text(word)])))
    const said = await saidIn(session)
    expect(said.toSorted()).toEqual(words.map((word) => `user: ${word}`).toSorted())
    expect(await saidIn(openers[0] as Session)).toEqual(said)
  },
)

verifies(
  ['agent-module/sessions in-memory'],
  'what is in memory goes with its store, and the same session in files is there for the next process',
  async () => {
    const folder = temporaryFolder()
    const look = toolThat('look', () => ({ content: 'a tree' }))
    const model = scriptedModel(script().toolCall('1', 'look').step().text('A tree.'))
    const store = openFileStore({ folder })
    const agent = await openAgent(model, { store, tools: () => [look] })
    await say(agent, 'What is there?')
    const { id } = agent.session
    await agent.close()
    await store.close()
    const later = openFileStore({ folder })
    onTestFinished(() => later.close())
    await using session = await later.open(id)
    expect(await saidIn(session)).toEqual([
      'user: What is there?',
      'assistant: [1]',
      'tool: 1=a tree',
      'assistant: A tree.',
    ])
    expect((await memoryStore().list()).sessions).toEqual([])
  },
)
