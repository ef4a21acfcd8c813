import { setImmediate } from 'node:timers/promises'
import type { SessionInfo } from '@tapetree/session'
import { describe, expect, test } from 'vitest'
import { keys, pasted, startChat, type RunningChat } from '../testing/chat-driver.ts'
import type { ScriptedHandle } from '../testing/scripted-handle.ts'
import { ScriptedServices } from '../testing/scripted-services.ts'
import type { ScriptedSource } from '../testing/scripted-source.ts'
import { slashPage } from './slash-page.ts'
import { slashTable, type SlashName } from './slash-table.ts'

interface Stage extends RunningChat {
  services: ScriptedServices
}

interface Behavior {
  /** What it does, as a sentence. */
  does: string
  /** After the name of the command. */
  words?: string
  arrange?: (handle: ScriptedHandle, parts: { source: ScriptedSource; services: ScriptedServices }) => void
  /** From when it was entered. */
  check: (stage: Stage) => Promise<void>
}

const lastCall = ({ handle }: Stage): unknown => handle.calls.at(-1)

/** One for each row of the table: a new row without a test does not compile. */
const behaviors: Record<SlashName, Behavior> = {
  help: {
    does: 'lists keys and commands',
    check: async ({ terminal }) => {
      await terminal.waitFor('Keys')
    },
  },
  model: {
    does: 'sets the only model that matches',
    words: 'small',
    arrange: (_, { source }) => {
      const rest = { provider: 'maker', name: '', thinkingLevels: [], isUsable: true }
      source.offered = ['small', 'large'].map((modelId) => ({ ...rest, modelId, reference: `maker/${modelId}` }))
    },
    check: async (stage) => {
      await expect
        .poll(() => lastCall(stage))
        .toEqual({ op: 'set_model', args: { provider: 'maker', model_id: 'small' } })
    },
  },
  thinking: {
    does: 'sets the level',
    words: 'high',
    check: async (stage) => {
      await expect.poll(() => lastCall(stage)).toEqual({ op: 'set_thinking_level', args: { level: 'high' } })
    },
  },
  mode: {
    does: 'sets the mode, and says so',
    words: 'plan',
    check: async (stage) => {
      await stage.terminal.waitFor('Permission mode: plan.')
      expect(lastCall(stage)).toEqual({ op: 'set_config', args: { mode: 'plan' } })
    },
  },
  undo: {
    does: 'shows what goes back first',
    check: async (stage) => {
      await expect.poll(() => stage.handle.calls[0]).toEqual({ op: 'rewind', args: { entry_id: 'e1', dry_run: true } })
    },
  },
  redo: {
    does: 'takes the last undo back',
    check: async (stage) => {
      await expect.poll(() => stage.handle.calls[0]).toMatchObject({ op: 'rewind', args: { dry_run: true } })
    },
  },
  diff: {
    does: 'says that nothing was changed',
    check: async ({ terminal }) => {
      await terminal.waitFor('has not changed any file')
    },
  },
  context: {
    does: 'shows what fills the context and where its log is, and undoes a compaction',
    arrange: (handle, { source, services }) => {
      source.sessions = [{ id: handle.sessionId, path: '/data/sessions/scripted' } as SessionInfo]
      services.contextNow = {
        tokens: 40_000,
        parts: [
          { name: 'tool output', tokens: 30_000 },
          { name: 'your messages', tokens: 10_000 },
        ],
        compaction: { beforeId: 'e1', tokensBefore: 90_000, dropped: ['user: the old plan'], messagesAfter: 2 },
      }
    },
    check: async (stage) => {
      const { terminal } = stage
      await terminal.waitFor(/tool output .*30k/)
      expect(terminal.screen().join('\n')).toContain('A summary replaces 1 message (90k tokens before).')
      expect(terminal.screen().join('\n')).toMatch(/Session first .*\n.*Log in +\/data\/sessions\/scripted /)
      terminal.press('3')
      await terminal.waitFor('user: the old plan')
      terminal.press(keys.enter)
      await terminal.waitFor((screen) => !screen.includes('the old plan'))
      terminal.type('/context')
      terminal.press(keys.enter)
      await terminal.waitFor('goes back to before it; 2 later messages')
      terminal.press('4')
      await terminal.waitFor('The summary is undone')
      expect(lastCall(stage)).toMatchObject({ op: 'branch', args: { entry_id: 'e1' } })
    },
  },
  blocked: {
    does: 'says that nothing was blocked',
    arrange: (handle) => (handle.reply = () => ({ writes: [] })),
    check: async ({ terminal }) => {
      await terminal.waitFor('Nothing was blocked.')
    },
  },
  permissions: {
    does: 'lists rules with their sources, and accepts a proposed one for the project',
    arrange: (_, { services }) => {
      const proposal = { approvals: 3, sessions: 2, lastApproved: new Date(0).toISOString() }
      services.overview = {
        rules: [{ effect: 'deny', text: 'command rm', from: '/config/settings.json:4' }],
        proposals: [{ id: 'npm', text: '`npm install *`', ...proposal }],
      }
    },
    check: async ({ terminal, services, source }) => {
      const screen = await terminal.waitFor('allowed 3 times in 2 sessions')
      expect(screen).toContain('deny command rm  (/config/settings.json:4)')
      terminal.press('1')
      await terminal.waitFor('Nothing to propose')
      expect(services.calls).toEqual(['accept npm', 'release first'])
      expect(source.calls).toContain('open first')
      terminal.press(keys.enter)
      await terminal.waitFor('Allowed in this project, from now on: `npm install *`')
    },
  },
  mcp: {
    does: 'lists servers, shows what has changed in full, and accepts exactly that',
    arrange: (_, { services }) => {
      services.reviewed = [
        { name: 'docs', state: 'ready', says: '', tools: [] },
        {
          name: 'tickets',
          state: 'changed',
          says: 'The tool close has another description.',
          tools: [{ name: 'close', description: 'Closes a ticket.\nNow also deletes it.', isNew: true }],
          sha256: 'abc',
        },
      ]
    },
    check: async ({ terminal, services }) => {
      await terminal.waitFor('changed: accept it to use its tools')
      terminal.press('2')
      await terminal.waitFor('Now also deletes it.')
      terminal.press('2')
      await terminal.waitFor('Accepted tickets as it is now.')
      expect(services.calls).toEqual(['accept server tickets abc', 'close servers'])
    },
  },
  jobs: {
    does: 'shows the output of a job, and stops it',
    arrange: (_, { source }) => void source.running.set('npm run dev', 'listening on 3000\n'),
    check: async ({ terminal, source }) => {
      await terminal.waitFor('listening on 3000')
      terminal.press('3')
      await terminal.waitFor('npm run dev: stopped')
      expect(source.calls).toContain('stop npm run dev')
    },
  },
  tree: {
    does: 'shows the tree',
    check: async ({ terminal }) => {
      await terminal.waitFor('Session tree')
    },
  },
  queue: {
    does: 'shows the queue',
    check: async ({ terminal }) => {
      await terminal.waitFor('Queue')
    },
  },
  sessions: {
    does: 'lists sessions',
    check: async ({ terminal }) => {
      await terminal.waitFor('Sessions')
    },
  },
  new: {
    does: 'starts a session',
    check: async ({ source }) => {
      await expect.poll(() => source.calls).toEqual(['create'])
    },
  },
  fork: {
    does: 'continues in a copy',
    check: async ({ terminal, source }) => {
      await terminal.waitFor('This is a copy of the session.')
      expect(source.calls).toEqual(['fork first'])
    },
  },
  name: {
    does: 'renames the session',
    words: 'date parser',
    check: async (stage) => {
      await stage.terminal.waitFor('Renamed the session to date parser.')
      expect(lastCall(stage)).toEqual({ op: 'rename', args: { name: 'date parser' } })
    },
  },
  label: {
    does: 'labels the current entry',
    words: 'before',
    check: async (stage) => {
      await stage.terminal.waitFor('Labeled this entry before.')
      expect(lastCall(stage)).toEqual({ op: 'label', args: { entry_id: 'e2', label: 'before' } })
    },
  },
  compact: {
    does: 'summarizes, with what to keep',
    words: 'the plan',
    check: async (stage) => {
      await expect.poll(() => lastCall(stage)).toEqual({ op: 'compact', args: { instructions: 'the plan' } })
    },
  },
  retry: {
    does: 'runs again',
    check: async (stage) => {
      await expect.poll(() => lastCall(stage)).toEqual({ op: 'retry', args: {} })
    },
  },
  resume: {
    does: 'resumes the interrupted run',
    check: async (stage) => {
      await expect.poll(() => lastCall(stage)).toEqual({ op: 'resume', args: { by_person: true } })
    },
  },
  share: {
    does: 'asks for a format and writes the file',
    check: async ({ terminal }) => {
      await terminal.waitFor('Secrets are removed.')
      terminal.press('2')
      await terminal.waitFor('Wrote /there/session-first.markdown (2,048 bytes). Removed 1 secret.')
    },
  },
  export: {
    does: 'writes a named format at once',
    words: 'html',
    check: async ({ terminal }) => {
      await terminal.waitFor('Wrote /there/session-first.html')
    },
  },
  usage: {
    does: 'shows what was used here and in the last days',
    arrange: (handle) => handle.setState('usage', { turns: 3, toolCalls: 5, runMs: 1, tokens: 12_000, cost: 0.12 }),
    check: async ({ terminal }) => {
      const screen = await terminal.waitFor('maker/small  12 calls, 34k tokens, $0.56')
      expect(screen).toContain('This session: 3 turns, 5 tool calls, 12k tokens, $0.12')
    },
  },
  login: {
    does: 'asks for a key without showing it, checks it, and stores only one that is accepted',
    words: 'other',
    check: async ({ terminal, services }) => {
      await terminal.waitFor('Key for Other')
      terminal.press(pasted('wrong-key'))
      await terminal.waitFor('•'.repeat('wrong-key'.length))
      terminal.press(keys.enter)
      await terminal.waitFor('The provider does not accept the key.')
      terminal.press(pasted('right-key\n'))
      terminal.press(keys.enter)
      await terminal.waitFor('Other accepts the key. It is stored.')
      expect(services.calls).toEqual(['store other right-key'])
      expect(terminal.written).not.toMatch(/wrong-key|right-key/)
    },
  },
  init: {
    does: 'asks the agent for AGENTS.md, with the wishes of the user',
    words: 'mention the linter',
    check: async (stage) => {
      await expect
        .poll(() => lastCall(stage))
        .toMatchObject({
          op: 'prompt',
          args: { text: expect.stringMatching(/AGENTS\.md[^]*Also: mention the linter$/) },
        })
    },
  },
  config: {
    does: 'shows where each choice comes from, and makes one the default',
    check: async ({ terminal, services }) => {
      const screen = await terminal.waitFor('model: maker/small')
      expect(screen).toContain('from /config/settings.json:3, for this project')
      terminal.press('1')
      await terminal.waitFor('Use it everywhere')
      terminal.press('2')
      await terminal.waitFor('New sessions use model maker/small everywhere.')
      expect(services.calls).toEqual(['remember everywhere {"model":"maker/small"}', 'remember project {"model":null}'])
    },
  },
  theme: {
    does: 'changes the colors',
    words: 'light',
    check: async ({ terminal }) => {
      await expect.poll(() => terminal.written).toContain('48;5;254')
    },
  },
  vim: {
    does: 'turns vim keys on',
    check: async ({ terminal }) => {
      await terminal.waitFor('Vim keys are on.')
    },
  },
  details: {
    does: 'shows reasoning',
    arrange: (handle) =>
      void handle.assistant(
        { type: 'reasoning', reasoning: { text: 'first\nsecond\nthird\nthe last thought' } },
        'Done.',
      ),
    check: async ({ terminal }) => {
      await terminal.waitFor('the last thought')
    },
  },
  copy: {
    does: 'copies the last answer through the terminal',
    check: async ({ terminal }) => {
      await expect.poll(() => terminal.written).toContain(`\u001b]52;c;${Buffer.from('Hello.').toString('base64')}`)
    },
  },
  steer: {
    does: 'lets Enter steer',
    check: async ({ terminal }) => {
      await terminal.waitFor('During a run, Enter steers it.')
    },
  },
  quit: {
    does: 'ends the chat',
    check: async ({ ended }) => {
      await ended
    },
  },
}

describe('each slash command', () => {
  const rows = Object.entries(behaviors).map(([name, behavior]) => ({ name, ...behavior }))
  test.each(rows)('/$name: $does', async ({ name, words = '', arrange, check }) => {
    const services = new ScriptedServices()
    await using chat = startChat({
      services: async () => services,
      arrange: (handle, source) => {
        handle.user('Hi.')
        handle.assistant('Hello.')
        arrange?.(handle, { source, services })
      },
    })
    await chat.terminal.waitFor('Enter sends')
    chat.terminal.type(`/${name} ${words}`.trim())
    chat.terminal.press(keys.enter)
    await check({ ...chat, services })
  })
})

test('a session on a server says which commands need its machine', async () => {
  await using chat = startChat()
  await chat.terminal.waitFor('Enter sends')
  chat.terminal.type('/usage')
  chat.terminal.press(keys.enter)
  await chat.terminal.waitFor('/usage works only on the machine that the session is on.')
})

test('? shows the sheet of keys if the prompt is empty, and is a letter otherwise', async () => {
  await using chat = startChat()
  const { terminal } = chat
  await terminal.waitFor('Enter sends')
  terminal.press('?')
  await terminal.waitFor('Ctrl-T')
  terminal.press(keys.escape)
  terminal.type('why?')
  await terminal.waitFor('why?')
})

test('the reference of slash commands and keys matches the tables (`npx vitest run -u` updates it)', async () => {
  await expect(slashPage()).toMatchFileSnapshot('../../../../../docs/reference/slash-commands.md')
  expect(slashPage()).toContain(`/${slashTable[0].name}`)
})

test('choices of model, thinking, mode and theme are remembered for the project; modes for a while are not', async () => {
  const services = new ScriptedServices()
  await using chat = startChat({
    services: async () => services,
    arrange: (handle, source) => {
      handle.setState('config', { model: null, thinkingLevel: null, mode: 'ask' })
      const small = { provider: 'maker', modelId: 'small', reference: 'maker/small', name: '' }
      source.offered = [{ ...small, thinkingLevels: [], isUsable: true }]
    },
  })
  const { terminal } = chat
  await terminal.waitFor('Enter sends')
  for (const command of ['/model small', '/thinking high', '/mode accept-edits', '/mode auto', '/theme light']) {
    terminal.type(command)
    terminal.press(keys.enter)
  }
  terminal.press(keys.shiftTab)
  await expect
    .poll(() => services.calls.toSorted())
    .toEqual([
      'remember project {"mode":"accept-edits"}',
      'remember project {"model":"maker/small"}',
      'remember project {"theme":"light"}',
      'remember project {"thinkingLevel":"high"}',
    ])
})

test('choices are written in the order in which they were made, and the chat ends after the last one', async () => {
  const services = new ScriptedServices()
  const hasQuit = Promise.withResolvers<void>()
  const log: string[] = []
  services.remember = async ({ theme }: { theme?: string | null }) => {
    // The first write takes longest.
    await hasQuit.promise
    if (theme === 'light') await setImmediate()
    log.push(`wrote ${theme}`)
  }
  await using chat = startChat({ services: async () => services })
  const { terminal } = chat
  const ended = chat.ended.then(() => log.push('ended'))
  await terminal.waitFor('Enter sends')
  for (const theme of ['light', 'dark']) {
    terminal.type(`/theme ${theme}`)
    terminal.press(keys.enter)
  }
  terminal.press(keys.ctrlD)
  await expect.poll(() => terminal.isStarted).toBe(false)
  hasQuit.resolve()
  await ended
  expect(log).toEqual(['wrote light', 'wrote dark', 'ended'])
})
