import { loadSettings } from '@tapetree/agent/settings'
import { script } from '@tapetree/agent/testing'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, vi } from 'vitest'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { verifies } from '../../support/verifies.ts'
import { door, host, noticesOf, patiently, shownOn, type Hosted } from './hosted-session.ts'

interface Added {
  id: string
  message: string
  queued_at: string
}

/** A session whose agent is busy until the test opens the door. */
async function busy(options: Parameters<typeof host>[1] = {}): Promise<Hosted & { open: () => void }> {
  const wait = door()
  const hosted = await host(script().do(wait.pass).text('First.'), options)
  const screen = await hosted.join('driver')
  await screen.prompt('Begin.')
  await wait.reached
  // A server that closes waits for a model that does not answer.
  onTestFinished(wait.open)
  return { ...hosted, open: wait.open }
}

const add = async ({ ask }: Hosted, message: string): Promise<Added> =>
  (await ask('POST', '/queue', { message, image_ids: [] })).body as Added

verifies(
  ['session-management/rest add', 'session-management/flow add'],
  'POST puts a message into the queue and answers 201 with its id, its words and when it was queued',
  async () => {
    const hosted = await busy()
    const { status, body } = await hosted.ask('POST', '/queue', { message: "What's the status?", image_ids: [] })
    expect(status).toBe(201)
    expect(body).toEqual({
      id: expect.stringMatching(/^q-\d+-[0-9a-f]{8}$/) as string,
      message: "What's the status?",
      queued_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT/) as string,
    })
  },
)

verifies(
  ['session-management/rest list', 'session-management/rest get'],
  'GET lists what waits with its count, and gives one message by its id',
  async () => {
    const hosted = await busy()
    const added = [await add(hosted, 'one'), await add(hosted, 'two'), await add(hosted, 'three')]
    const { status, body } = await hosted.ask('GET', '/queue')
    expect([status, body]).toMatchObject([200, { count: 3, messages: added }])
    expect(await hosted.ask('GET', `/queue/${added[1]?.id}`)).toMatchObject({ status: 200, body: added[1] })
    expect((await hosted.ask('GET', '/queue/q-1-00000000')).status).toBe(404)
  },
)

verifies(
  ['session-management/rest delete', 'session-management/rest clear'],
  'DELETE takes one message out, or all of them',
  async () => {
    const hosted = await busy()
    const one = await add(hosted, 'one')
    await add(hosted, 'two')
    expect((await hosted.ask('DELETE', `/queue/${one.id}`)).status).toBe(204)
    expect((await hosted.ask('DELETE', `/queue/${one.id}`)).status).toBe(404)
    expect((await hosted.ask('GET', '/queue')).body).toMatchObject({ count: 1 })
    expect((await hosted.ask('DELETE', '/queue')).status).toBe(204)
    expect((await hosted.ask('GET', '/queue')).body).toEqual({ messages: [], count: 0 })
  },
)

verifies(
  ['session-management/queue while-busy', 'session-management/queue delivered', 'session-management/flow next'],
  'a message that came while the agent worked is delivered when it is done, by one line that also takes it out',
  async () => {
    const hosted = await busy()
    const screen = await hosted.join('watcher')
    const { id } = await add(hosted, 'And then?')
    expect(shownOn(screen)).toEqual(['user: Begin.'])
    hosted.open()
    await vi.waitFor(
      () => expect(shownOn(screen)).toEqual(['user: Begin.', 'agent: First.', 'user: And then?', 'agent: Well.']),
      patiently,
    )
    const delivered = [...screen.transcript.path.items].find((item) => item.type === 'user' && item.submissionId === id)
    expect(delivered).toBeDefined()
    expect((await hosted.ask('GET', '/queue')).body).toMatchObject({ count: 0 })
  },
)

verifies(
  ['session-management/queue fire-and-forget', 'session-management/queue follow-up', 'session-management/queue tasks'],
  'several messages are left at once, nobody waits for an answer, and each has its turn in order',
  async () => {
    const hosted = await busy()
    for (const task of ['one', 'two', 'three']) await add(hosted, task)
    hosted.open()
    await hosted.idle()
    const screen = await hosted.join('late')
    await vi.waitFor(
      () =>
        expect(shownOn(screen).filter((line) => line.startsWith('user'))).toEqual([
          'user: Begin.',
          'user: one',
          'user: two',
          'user: three',
        ]),
      patiently,
    )
  },
)

verifies(
  ['session-management/queue automation'],
  'a program that knows only the API gives the agent work and finds it done',
  async () => {
    const hosted = await host(script().text('Nightly report.'))
    await add(hosted, 'Write the report.')
    await vi.waitFor(async () => {
      const { body } = await hosted.ask('GET', '/events')
      expect(JSON.stringify(body)).toContain('Nightly report.')
    }, patiently)
  },
)

verifies(
  ['session-management/notice transport', 'session-management/notice updated', 'session-management/flow added'],
  'every screen is told that a message was added, removed, or that all were cleared, with how many are left',
  async () => {
    const hosted = await busy()
    const screens = [await hosted.join('left'), await hosted.join('right')]
    const told = screens.map(noticesOf)
    const one = await add(hosted, 'one')
    const two = await add(hosted, 'two')
    await hosted.ask('DELETE', `/queue/${one.id}`)
    await hosted.ask('DELETE', '/queue')
    const expected = [
      { type: 'queue_updated', data: { queue_length: 1, action: 'added', message_id: one.id } },
      { type: 'queue_updated', data: { queue_length: 2, action: 'added', message_id: two.id } },
      { type: 'queue_updated', data: { queue_length: 1, action: 'removed', message_id: one.id } },
      { type: 'queue_updated', data: { queue_length: 0, action: 'cleared' } },
    ]
    for (const notices of told) await vi.waitFor(() => expect(notices).toMatchObject(expected), patiently)
  },
)

verifies(
  ['session-management/notice sending', 'session-management/notice sent', 'session-management/flow sending'],
  'before a message goes out every screen is told so, and again when it was delivered, both with its id',
  async () => {
    const hosted = await busy()
    const notices = noticesOf(await hosted.join('watcher'))
    const { id } = await add(hosted, 'next')
    hosted.open()
    await hosted.idle()
    await vi.waitFor(() => {
      expect(notices).toContainEqual({ type: 'queue_message_sending', data: { message_id: id } })
      expect(notices).toContainEqual({ type: 'queue_message_sent', data: { message_id: id } })
    }, patiently)
  },
)

verifies(
  ['session-management/flow delay', 'session-management/flow removed', 'session-management/flow sent'],
  'announced, then the delay, then out of the queue, then sent: in this order and no other',
  async () => {
    const hosted = await busy({ settings: () => ({ followUpDelayMs: 3000 }) })
    const notices = noticesOf(await hosted.join('watcher'))
    await add(hosted, 'next')
    const said = (): string[] => notices.map(({ type, data }) => ('action' in data ? data.action : type))
    hosted.open()
    expect(await hosted.clock.waited()).toBe(3000)
    await vi.waitFor(() => expect(said()).toEqual(['added', 'queue_message_sending']), patiently)
    hosted.clock.advance(3000)
    await vi.waitFor(
      () => expect(said()).toEqual(['added', 'queue_message_sending', 'removed', 'queue_message_sent']),
      patiently,
    )
  },
)

verifies(['session-management/flow prompt'], 'what is delivered is a prompt like any other', async () => {
  const hosted = await busy()
  await add(hosted, 'next')
  hosted.open()
  await hosted.idle()
  const live = await hosted.sessions.get(hosted.sessionId)
  const { messages } = await live.session.getContext()
  expect(messages.map(({ message }) => message.role)).toEqual(['user', 'assistant', 'user', 'assistant'])
})

verifies(
  ['session-management/config place', 'session-management/config enabled', 'session-management/config delay'],
  'the section `conversations` of the configuration file says whether messages go out and after how long; by itself at once',
  async () => {
    const home = temporaryFolder()
    const config = join(home, '.config/tapetree')
    mkdirSync(config, { recursive: true, mode: 0o700 })
    const load = async (): Promise<unknown> => (await loadSettings({ cwd: home, home, env: {} })).values.conversations
    expect(await load()).toEqual({ queue: { enabled: true, delay_seconds: 0 } })
    const section = 'conversations:\n  queue:\n    enabled: false\n    delay_seconds: 5\n'
    writeFileSync(join(config, 'settings.yaml'), section, { mode: 0o600 })
    expect(await load()).toEqual({ queue: { enabled: false, delay_seconds: 5 } })
    const held = await busy({ settings: () => ({ sendsFollowUps: false }) })
    await add(held, 'stays')
    held.open()
    await held.idle()
    expect((await held.ask('GET', '/queue')).body).toMatchObject({ count: 1 })
  },
)
