import { expect, onTestFinished, test, vi } from 'vitest'
import type { Question } from '../chat/rewinding.ts'
import { ctrl, keys, startChat } from '../testing/chat-driver.ts'
import { ScriptedSource } from '../testing/scripted-source.ts'

test('a typed message is sent, and the answer streams in', async () => {
  await using chat = startChat()
  const { terminal, handle } = chat
  await terminal.waitFor('Type what to do')
  terminal.type('hello')
  await terminal.waitFor('hello')
  terminal.press(keys.enter)
  expect(handle.calls).toEqual([])
  await terminal.waitFor((screen) => !screen.includes('hello'))
  expect(handle.calls).toEqual([{ op: 'prompt', args: { text: 'hello' } }])
  handle.user('hello')
  handle.startRun()
  handle.streamText('a1', 'It is ')
  await terminal.waitFor('It is')
  handle.streamText('a1', '**fine**.')
  await terminal.waitFor('It is fine.')
})

test('during a run Enter queues, Alt-Enter steers, and the hint shows both', async () => {
  await using chat = startChat()
  const { terminal, handle } = chat
  handle.startRun()
  await terminal.waitFor('Enter queues · Alt-Enter steers')
  handle.reply = (op) => (op === 'prompt' ? { outcome: 'queued', run_id: 'run-1', message_id: 'q' } : undefined)
  terminal.type('later')
  terminal.press(keys.enter)
  await terminal.waitFor((screen) => !screen.includes(' later'))
  terminal.type('now')
  terminal.press(keys.altEnter)
  await terminal.waitFor((screen) => !screen.includes(' now'))
  expect(handle.calls).toEqual([
    { op: 'prompt', args: { text: 'later' } },
    { op: 'prompt', args: { text: 'now', when_busy: 'steer' } },
  ])
})

test('Ctrl-C stops the turn, and a second one within two seconds quits', async () => {
  const chat = startChat()
  chat.handle.startRun()
  await chat.terminal.waitFor('Waiting for the model')
  chat.terminal.press(keys.ctrlC)
  await chat.terminal.waitFor('Everything so far is kept')
  expect(chat.handle.calls).toEqual([{ op: 'cancel', args: { run_id: 'run-1' } }])
  chat.clock.now += 1500
  chat.terminal.press(keys.ctrlC)
  expect(await chat.ended).toEqual({ sessionId: 'first' })
  expect(chat.handle.isClosed).toBe(true)
})

test('when idle Ctrl-C warns, and warns again much later', async () => {
  await using chat = startChat()
  await chat.terminal.waitFor('Enter sends')
  chat.terminal.press(keys.ctrlC)
  await chat.terminal.waitFor('Press Ctrl-C again to quit')
  chat.clock.now += 3000
  chat.terminal.type('x')
  chat.terminal.press(keys.ctrlC)
  await chat.terminal.waitFor('Up restores it')
  chat.terminal.press(keys.up)
  await chat.terminal.waitFor(' x')
})

test('Ctrl-C on a question answers it like Esc, and so does a panel that replaces it', async () => {
  const answers: unknown[] = []
  const question = (title: string): Question<string> => ({
    title,
    intro: [],
    choices: [{ value: 'yes', label: 'Yes' }],
  })
  await using chat = startChat({
    first: async (ui) => {
      answers.push(await ui.ask(question('Do you trust it?')))
      answers.push(await ui.askSecret({ title: 'Key', intro: [] }))
      const replaced = ui.ask(question('Early question'))
      const newer = ui.ask(question('Late question'))
      answers.push(await replaced, await newer)
      return new ScriptedSource().opened('first')
    },
  })
  const { terminal } = chat
  for (const title of ['Do you trust it?', 'Key', 'Late question']) {
    await terminal.waitFor(title)
    terminal.press(keys.ctrlC)
    chat.clock.now += 3000
  }
  await terminal.waitFor('Enter sends')
  await expect.poll(() => answers).toEqual([undefined, undefined, undefined, undefined])
})

test('after a switch, Ctrl-C does not claim to stop a command of another session, and the command does not come back', async () => {
  await using chat = startChat()
  const { terminal, handle, source } = chat
  const command = Promise.withResolvers<unknown>()
  handle.reply = (op) => (op === 'bash' ? command.promise : undefined)
  await terminal.waitFor('Enter sends')
  terminal.type('!sleep 100')
  terminal.press(keys.enter)
  await terminal.waitFor('Ctrl-C stops your command')
  terminal.type('/new')
  terminal.press(keys.enter)
  await terminal.waitFor((screen) => !screen.includes('Ctrl-C stops your command'))
  command.reject(new Error('This session handle is closed.'))
  terminal.press(keys.ctrlC)
  const screen = await terminal.waitFor('Press Ctrl-C again to quit.')
  expect(screen).not.toMatch(/Stopped|sleep|handle is closed/)
  expect(source.handles.get('new-1')?.calls).toEqual([])
})

test('a refused message returns to the composer with the reason', async () => {
  await using chat = startChat()
  const { terminal, handle } = chat
  handle.reply = () => {
    throw new Error('There is no key for this model.')
  }
  await terminal.waitFor('Enter sends')
  terminal.type('precious words')
  terminal.press(keys.enter)
  await terminal.waitFor((screen) => screen.includes('There is no key') && screen.includes('precious words'))
})

test('an unknown command is not sent, and the likely one is suggested', async () => {
  await using chat = startChat()
  const { terminal, handle } = chat
  await terminal.waitFor('Enter sends')
  terminal.type('/modle')
  terminal.press(keys.enter)
  await terminal.waitFor('Did you mean /model?')
  expect(handle.calls).toEqual([])
})

test('a permission prompt shows the full command and accepts a key after a quiet moment', async () => {
  await using chat = startChat()
  const { terminal, handle, clock } = chat
  handle.startRun()
  handle.requestPermission({
    requestId: 'p1',
    tool: 'bash',
    title: 'rm -rf build',
    input: { command: 'rm -rf build' },
    options: [
      { optionId: 'once', label: 'Allow once', kind: 'allow_once' },
      { optionId: 'no', label: 'Do not allow', kind: 'reject_once' },
    ],
  })
  await terminal.waitFor('Allow bash?')
  expect(terminal.screen().join('\n')).toContain('│ rm -rf build')
  terminal.press('1')
  await terminal.waitFor('Press it again')
  clock.now += 1000
  terminal.press('1')
  await terminal.waitFor((screen) => !screen.includes('Allow once'))
  expect(handle.calls).toEqual([{ op: 'permission.answer', args: { request_id: 'p1', option_id: 'once' } }])
})

test('an answer from another client is attributed to it', async () => {
  await using chat = startChat()
  const { terminal, handle, clock } = chat
  handle.reply = (op) => {
    if (op !== 'permission.answer') return undefined
    const problem = {
      type: 'already-resolved',
      title: 'Already resolved',
      status: 409,
      client: 'phone',
      option_id: 'no',
    }
    throw Object.assign(new Error('answered'), { name: 'ProblemError', problem })
  }
  handle.requestPermission({
    requestId: 'p1',
    tool: 'bash',
    title: 'ls',
    options: [{ optionId: 'once', label: 'Allow once', kind: 'allow_once' }],
  })
  await terminal.waitFor('Allow once')
  clock.now += 1000
  terminal.press('1')
  await terminal.waitFor('answered by phone with no')
})

test('an interrupted run can be resumed', async () => {
  await using chat = startChat()
  const { terminal, handle } = chat
  handle.user('do it')
  handle.setState('run', { runId: 'r', isBusy: false, waitingFor: { type: 'resume', runId: 'r' } })
  await terminal.waitFor('A run was interrupted')
  terminal.press(keys.enter)
  await terminal.waitFor((screen) => !screen.includes('A run was interrupted'))
  expect(handle.calls).toEqual([{ op: 'resume', args: { by_person: true } }])
})

test('another session replaces the current one, and the typed text stays', async () => {
  await using chat = startChat()
  const { terminal, source, handle } = chat
  handle.user('the old one')
  const info = {
    created: '',
    modified: '',
    messageCount: 1,
    status: 'idle',
    queueLength: 0,
    cost: 0,
    damaged: false,
  } as const
  source.sessions = [{ ...info, id: 'other', name: 'the other one' }]
  source.opened('other').handle.user('said elsewhere')
  await terminal.waitFor('the old one')
  terminal.type('half a thought')
  terminal.press(ctrl('s'))
  await terminal.waitFor('the other one')
  terminal.press(keys.enter)
  await terminal.waitFor((screen) => screen.includes('said elsewhere') && screen.includes('half a thought'))
  expect(source.calls).toEqual(['open other'])
  expect(handle.isClosed).toBe(true)
})

test('sessions are renamed, archived and deleted in the picker', async () => {
  const info = { created: '', modified: '', messageCount: 1, status: 'idle', queueLength: 0, cost: 0 } as const
  await using chat = startChat({
    arrange: (_, source) => {
      source.sessions = [{ ...info, damaged: false, id: 'other', name: 'the other one' }]
    },
  })
  const { terminal, source } = chat
  await terminal.waitFor('Enter sends')
  terminal.press(ctrl('s'))
  await terminal.waitFor('the other one')
  terminal.press(ctrl('n'))
  terminal.press(ctrl('u'))
  terminal.type('new name')
  terminal.press(keys.enter)
  terminal.press(ctrl('x'))
  terminal.press(ctrl('k'))
  await terminal.waitFor('y delete')
  terminal.press('y')
  expect(source.calls).toEqual(['rename other new name', 'archive other', 'delete other'])
})

test('the screen of a session that another process owns says so and accepts no message', async () => {
  await using chat = startChat({ access: { type: 'read-only', reason: 'process 12 on this machine owns it' } })
  const { terminal, handle } = chat
  await terminal.waitFor('read-only: process 12')
  terminal.type('hi')
  terminal.press(keys.enter)
  await terminal.waitFor((screen) => screen.includes('Not sent') && screen.includes(' hi'))
  expect(handle.calls).toEqual([])
})

test('at the end the terminal is restored, with the last answer in its scrollback', async () => {
  const chat = startChat()
  chat.handle.user('what is it')
  chat.handle.assistant('The last answer.')
  await chat.terminal.waitFor('The last answer.')
  expect(chat.terminal.isAltScreen).toBe(true)
  chat.terminal.press(keys.ctrlD)
  await chat.ended
  await chat.terminal.settled()
  expect([chat.terminal.isStarted, chat.terminal.isAltScreen]).toEqual([false, false])
  expect(chat.terminal.scrollback().join('\n')).toContain('The last answer.')
})

/** The heading in the light theme. */
const lightHeading = '38;5;25m'
const lightBackground = '\u001b]11;rgb:ffff/ffff/eeee\u0007'

test('a light terminal gets the light theme, however late it answers', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  await using chat = startChat({ look: { detectsTheme: true } })
  vi.advanceTimersByTime(60_000)
  vi.useRealTimers()
  const { terminal } = chat
  await terminal.waitFor('Type what to do')
  expect(terminal.written).toContain('\u001b]11;?')
  terminal.press(lightBackground)
  await expect.poll(() => terminal.written).toContain(lightHeading)
  expect(terminal.screen().join('\n')).not.toContain('rgb:')
})

test('a theme that the user has chosen stays when the terminal tells its background', async () => {
  await using chat = startChat({ look: { detectsTheme: true } })
  const { terminal } = chat
  await terminal.waitFor('Type what to do')
  terminal.type('/theme dark')
  terminal.press(keys.enter)
  terminal.press(lightBackground)
  terminal.type('a word')
  await terminal.waitFor('a word')
  expect(terminal.written).not.toContain(lightHeading)
})
