import type { SessionInfo } from '@tapetree/session'
import { expect, test } from 'vitest'
import { ctrl, keys, startChat, type RunningChat } from '../testing/chat-driver.ts'

function sessionNamed(id: string, name: string): SessionInfo {
  const at = new Date(0).toISOString()
  const rest = { created: at, modified: at, messageCount: 1, queueLength: 0, cost: 0, damaged: false }
  return { ...rest, id, name, status: 'idle' }
}

function openedPalette(): RunningChat {
  return startChat({
    arrange: (handle, source) => {
      source.paths = ['src/parse-date.ts', 'src/bad\u001b[2Jname.ts', 'a b.md']
      source.sessions = [sessionNamed('first', 'this one'), sessionNamed('s2', 'the date parser')]
      const rest = { provider: 'maker', name: 'Quick', thinkingLevels: [], isUsable: true }
      source.offered = [
        { ...rest, modelId: 'small', reference: 'maker/small' },
        { ...rest, modelId: 'none', reference: 'maker/none', isUsable: false },
      ]
      handle.setState('commands', [{ name: 'review', description: 'look at the changes' }])
    },
  })
}

async function search(chat: RunningChat, text: string, until: string | RegExp): Promise<string> {
  await chat.terminal.waitFor('Enter sends')
  chat.terminal.press(ctrl('k'))
  await chat.terminal.waitFor('Go to')
  chat.terminal.type(text)
  return chat.terminal.waitFor(until)
}

test('Ctrl-K finds commands, files, sessions and models by a few letters', async () => {
  await using chat = openedPalette()
  const screen = await search(chat, 'date', /the date parser .*session/)
  expect(screen).toMatch(/src\/parse-date\.ts .*file/)
  expect(screen).not.toContain('this one')
  expect(chat.terminal.written).not.toContain('\u001b[2Jname')
})

test('a command runs, one that needs words waits for them, and a session command goes to the composer', async () => {
  await using chat = openedPalette()
  await search(chat, '/usa', /› \/usage/)
  chat.terminal.press(keys.enter)
  await chat.terminal.waitFor('/usage works only on the machine')
  await search(chat, '/name', /› \/name/)
  chat.terminal.press(keys.enter)
  await chat.terminal.waitFor((text) => !text.includes('Go to') && text.includes('/name'))
  chat.terminal.press(ctrl('u'))
  await search(chat, '/revi', /› \/review/)
  chat.terminal.press(keys.enter)
  await chat.terminal.waitFor((text) => !text.includes('Go to') && text.includes('/review'))
})

test('a file goes to the composer, quoted if it has blanks', async () => {
  await using chat = openedPalette()
  await search(chat, '@a b', /› a b\.md/)
  chat.terminal.press(keys.enter)
  await chat.terminal.waitFor('@"a b.md"')
})

test('a session is opened, a model is chosen, and models without a key are left out', async () => {
  await using chat = openedPalette()
  const screen = await search(chat, ':', /maker\/small .*model/)
  expect(screen).not.toContain('maker/none')
  chat.terminal.press(keys.enter)
  await expect
    .poll(() => chat.handle.calls.at(-1))
    .toEqual({
      op: 'set_model',
      args: { provider: 'maker', model_id: 'small' },
    })
  await search(chat, '#pars', /› the date parser/)
  chat.terminal.press(keys.enter)
  await expect.poll(() => chat.source.calls).toContain('open s2')
})

test('with text in the prompt, Ctrl-K deletes to the end of the line', async () => {
  await using chat = openedPalette()
  await chat.terminal.waitFor('Enter sends')
  chat.terminal.type('keep lose')
  for (let step = 0; step < 5; step++) chat.terminal.press('\u001b[D')
  chat.terminal.press(ctrl('k'))
  await chat.terminal.waitFor((text) => text.includes('keep') && !text.includes('lose'))
})
