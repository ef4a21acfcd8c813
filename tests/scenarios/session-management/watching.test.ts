import { ModelError } from '@tapetree/agent'
import { script } from '@tapetree/agent/testing'
import { agentSessions, LiveSessions, RequestProblem } from '@tapetree/server'
import { memoryStore } from '@tapetree/session'
import { expect, onTestFinished, vi } from 'vitest'
import { tool } from '../../golden/tool.ts'
import { storedIn } from '../../support/stored.ts'
import { verifies } from '../../support/verifies.ts'
import { door, host, patiently, shownOn } from './hosted-session.ts'

verifies(
  ['session-management/owner store', 'session-management/owner background-session'],
  'what a live session does is in the store and nowhere else: closed and opened again it is the same',
  async () => {
    const { sessions, sessionId, join, store, idle } = await host(script().text('Hello.'))
    const screen = await join()
    await screen.prompt('Hi.')
    await idle()
    const live = await sessions.get(sessionId)
    const { head } = live.session
    await live.close()
    await using kept = await store.open(sessionId, { readOnly: true })
    expect(kept.head.seq).toBeGreaterThanOrEqual(head.seq)
    expect((await kept.getContext()).messages.map(({ message }) => message.role)).toEqual(['user', 'assistant'])
    expect(Object.keys(kept)).not.toContain('observers')
  },
)

verifies(
  ['session-management/owner session-manager'],
  'the registry opens a session once for all who ask, makes new ones, and keeps to its limit',
  async () => {
    const store = memoryStore()
    const opened: string[] = []
    const sessions = new LiveSessions({
      store,
      maxLive: 1,
      create: async (options) => {
        await using session = await store.create(options)
        return session.id
      },
      openDriver: (id) => {
        opened.push(id)
        return Promise.reject(new RequestProblem(503, 'session-busy', 'There is no agent in this scenario.'))
      },
    })
    const [one, two] = [await sessions.create({ cwd: '/' }), await sessions.create({ cwd: '/' })]
    expect(one).not.toBe(two)
    await Promise.allSettled([sessions.get(one), sessions.get(one)])
    expect(opened).toEqual([one])
    await sessions.close()
    expect(typeof agentSessions).toBe('function')
  },
)

verifies(
  ['session-management/owner ws-client', 'session-management/owner frontend', 'session-management/flow screens'],
  'a screen has its socket, shows what the session tells and keeps nothing that the session would miss',
  async () => {
    const { join, sessions, sessionId, idle } = await host(script().text('One.').step().text('Two.'))
    const screen = await join()
    await screen.prompt('a')
    await idle()
    await vi.waitFor(() => expect(shownOn(screen)).toEqual(['user: a', 'agent: One.']), patiently)
    await screen.close()
    const live = await sessions.get(sessionId)
    await live.perform('direct', 'me', { op: 'prompt', args: { text: 'b' } })
    await idle()
    expect(live.session.totals.turns).toBe(2)
  },
)

verifies(
  ['session-management/flow observers', 'session-management/observer message', 'session-management/observer thought'],
  'text and reasoning reach who watches while they are being said, as they were said',
  async () => {
    const wait = door()
    const said = script().reasoning('Hm, **hm**.').text('So *much* for that. ').do(wait.pass).text('Done.')
    const { join, idle } = await host(said)
    const screen = await join()
    await screen.prompt('Go.')
    await wait.reached
    const live = (): string =>
      [...screen.transcript.inFlight.values()].flatMap(({ parts }) => parts.map((part) => part.text)).join('|')
    await vi.waitFor(() => expect(live()).toContain('So *much*'), patiently)
    wait.open()
    await idle()
    await vi.waitFor(
      () => expect(shownOn(screen)).toEqual(['user: Go.', 'thought: Hm, **hm**.', 'agent: So *much* for that. Done.']),
      patiently,
    )
    expect(screen.transcript.inFlight.size).toBe(0)
  },
)

verifies(
  ['session-management/observer tool-call', 'session-management/observer tool-update'],
  'who watches sees a call when it is made, while it runs and when it is done',
  async () => {
    const wait = door()
    const slow = tool('act', async () => {
      await wait.pass()
      return { content: 'acted' }
    })
    const { join, idle } = await host(script().toolCall('a', 'act').step().text('Done.'), { tools: () => [slow] })
    const screen = await join()
    await screen.prompt('Act.')
    await wait.reached
    await vi.waitFor(() => expect(shownOn(screen)).toContain('call: act running'), patiently)
    wait.open()
    await idle()
    await vi.waitFor(() => expect(shownOn(screen)).toContain('call: act completed'), patiently)
  },
)

verifies(
  [
    'session-management/observer plan',
    'session-management/observer file-write',
    'session-management/observer file-read',
  ],
  'plans and files that were read or written come to who watches as lines of the log',
  async () => {
    const busy = tool('act', async (context) => {
      await context.append({ type: 'plan', plan: { items: [{ text: 'Tidy', status: 'in_progress' }] } })
      await context.append({ type: 'file_read', fileRead: { path: '/a', size: 3 } })
      await context.append({ type: 'file_write', fileWrite: { path: '/b', size: 4 } })
      return { content: 'done' }
    })
    const { join, sessions, sessionId, idle } = await host(script().toolCall('a', 'act').step().text('Done.'), {
      tools: () => [busy],
    })
    const screen = await join()
    await screen.prompt('Act.')
    await idle()
    await vi.waitFor(() => expect(screen.transcript.plan).toMatchObject([{ text: 'Tidy' }]), patiently)
    const live = await sessions.get(sessionId)
    await vi.waitFor(() => expect(screen.transcript.seq).toBe(live.session.head.seq), patiently)
    const types = (await storedIn(live.session)).map((line) => line['type'])
    expect(types).toEqual(expect.arrayContaining(['plan', 'file_read', 'file_write']))
  },
)

verifies(
  ['session-management/observer permission'],
  'a permission is asked of all who watch, and the first answer counts for all',
  async () => {
    const { join, idle } = await host(script().toolCall('a', 'act').step().text('Done.'), {
      tools: () => [tool('act')],
      gate: (requests) => ({
        admit: async ({ tool: name }, signal) => {
          const options = [{ optionId: 'yes', label: 'Yes', kind: 'allow_once' as const }]
          const { outcome } = await requests.ask({ tool: name, title: 'May I?', options }, signal)
          return outcome === 'allowed' ? { type: 'allowed' } : { type: 'denied', reason: 'no' }
        },
      }),
    })
    const [left, right] = [await join('left'), await join('right')]
    await left.prompt('Act.')
    await vi.waitFor(() => {
      expect(left.transcript.permissions).toHaveLength(1)
      expect(right.transcript.permissions).toHaveLength(1)
    }, patiently)
    const requestId = left.transcript.permissions[0]?.requestId ?? ''
    await right.answer(requestId, { optionId: 'yes' })
    await expect(left.answer(requestId, { optionId: 'yes' })).rejects.toMatchObject({
      problem: { type: 'already-resolved' },
    })
    await idle()
    await vi.waitFor(() => expect(left.transcript.permissions).toEqual([]), patiently)
  },
)

verifies(
  [
    'session-management/observer complete',
    'session-management/observer error',
    'session-management/observer client-id',
  ],
  'who watches is told that a run is over and what went wrong, and each is known by an id of its own',
  async () => {
    const failing = script().error(new ModelError('refused', 'The model fell over.'))
    const { join, sessions, sessionId } = await host(failing)
    const screen = await join('desk')
    await screen.prompt('Go.')
    await vi.waitFor(() => expect(screen.transcript.lastRun).toMatchObject({ outcome: 'failed' }), patiently)
    expect(screen.transcript.lastError?.message).toContain('The model fell over.')
    const live = await sessions.get(sessionId)
    expect(live.connectionOf('desk')?.client).toMatchObject({ id: 'desk' })
  },
)

verifies(
  ['session-management/observers tabs', 'session-management/observers none', 'session-management/observers return'],
  'many screens show the same, the work goes on when all are gone, and who comes back gets only what is new',
  async () => {
    const wait = door()
    const { join, idle, rest, sessionId } = await host(script().text('Begun. ').do(wait.pass).text('Done.'))
    const [left, right] = [await join('left'), await join('right')]
    await left.prompt('Go.')
    await wait.reached
    await vi.waitFor(() => expect(right.transcript.run).not.toBeNull(), patiently)
    const { seq } = right.transcript
    await Promise.all([left.close(), right.close()])
    wait.open()
    await idle()
    const page = await rest.events(sessionId, { after: seq })
    expect(page.events.length).toBeGreaterThan(0)
    expect(page.events.every((line) => line.seq > seq)).toBe(true)
    const again = await join('left')
    expect(shownOn(again)).toEqual(['user: Go.', 'agent: Begun. Done.'])
  },
)

verifies(
  ['session-management/observers browser-tabs'],
  'two tabs of one browser show the same text while it is written, each can prompt, and one goes on when the other is closed',
  async () => {
    const wait = door()
    onTestFinished(wait.open)
    const { join, idle } = await host(script().text('Begun. ').do(wait.pass).text('Done.').step().text('Again.'))
    // Tabs share the token of their browser. The client of the web app is this class.
    const [left, right] = [await join('left-tab'), await join('right-tab')]
    await left.prompt('From the left.')
    await wait.reached
    for (const tab of [left, right]) {
      const written = (): string => JSON.stringify([...tab.transcript.inFlight.values()])
      await vi.waitFor(() => expect(written()).toContain('Begun. '), patiently)
      expect(shownOn(tab)).toEqual(['user: From the left.'])
    }
    expect(
      right
        .state('presence')
        ?.map(({ name }) => name)
        .toSorted(),
    ).toEqual(['left-tab', 'right-tab'])
    await left.close()
    wait.open()
    await idle()
    await right.prompt('From the right.')
    const shown = ['user: From the left.', 'agent: Begun. Done.', 'user: From the right.', 'agent: Again.']
    await vi.waitFor(() => expect(shownOn(right)).toEqual(shown), patiently)
    // A tab that is opened later shows the whole session.
    expect(shownOn(await join('third-tab'))).toEqual(shown)
  },
)
