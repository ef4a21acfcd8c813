import { chmod, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { say } from '../peers/answers.ts'
import { send, testHome } from './chat.ts'
import { builtCommand } from './command-path.ts'
import { startTerminal } from './terminal.ts'

/** A shell with job control, which is what Ctrl-Z returns to. */
const shell = ['bash', '--noprofile', '--norc', '-i'] as const

test.each([
  ['Ctrl-Z', []],
  ['Ctrl-Z on a screen that scrolls by itself', ['--no-alt-screen']],
  ['Ctrl-Z of somebody who hears the screen', ['--screen-reader']],
])('%s gives the terminal back to the shell, and fg takes up the chat where it was', async (_name, args) => {
  const home = await testHome()
  home.provider.script(say('It is a bird.'))
  await using terminal = startTerminal({ home, command: shell, env: { PS1: 'shell> ' } })
  await terminal.waitFor('shell>')
  send(terminal, [...builtCommand, ...args].join(' '))
  await terminal.waitFor(args.includes('--screen-reader') ? 'Type a message' : 'model-1')
  terminal.type('What is a wr')
  await terminal.waitFor('What is a wr')
  terminal.press('ctrl-z')
  await terminal.waitFor('Stopped')
  expect(terminal.emulator.buffer.active.type).toBe('normal')
  expect(terminal.emulator.modes).toMatchObject({ mouseTrackingMode: 'none' })
  // A terminal in raw mode would not echo, and would not run it on Enter.
  send(terminal, 'echo $((40 + 2))')
  await terminal.waitFor(/^42$/m)
  send(terminal, 'fg')
  await terminal.waitFor((rows) => /model-1|> What is a wr/.test(rows.findLast((row) => row !== '') ?? ''))
  send(terminal, 'en?')
  await terminal.waitFor('It is a bird.')
  expect(JSON.stringify(home.provider.requests.at(-1)?.body)).toContain('What is a wren?')
})

test('an interrupt or a suspension in the editor does not reach the chat', async () => {
  const home = await testHome()
  home.provider.script(say('It is a bird.'))
  const editor = join(home.home, 'editor')
  const traps = ['trap "echo Interrupted." INT', 'trap "echo Continued." CONT']
  const lines = [...traps, 'echo Editing.', 'until [ "$line" = done ]; do read line; done']
  await writeFile(editor, ['#!/bin/sh', ...lines, 'printf " wren?" >> "$1"', ''].join('\n'))
  await chmod(editor, 0o755)
  await using terminal = startTerminal({ home, command: shell, env: { PS1: 'shell> ', EDITOR: editor } })
  await terminal.waitFor('shell>')
  send(terminal, builtCommand.join(' '))
  await terminal.waitFor('model-1')
  terminal.type('What is a')
  await terminal.waitFor('What is a')
  terminal.press('ctrl-g')
  await terminal.waitFor('Editing.')
  terminal.press('ctrl-c')
  await terminal.waitFor('Interrupted.')
  terminal.press('ctrl-z')
  await terminal.waitFor('Stopped')
  send(terminal, 'fg')
  await terminal.waitFor('Continued.')
  send(terminal, 'done')
  await terminal.waitFor('What is a wren?')
  terminal.press('enter')
  await terminal.waitFor('It is a bird.')
  expect(JSON.stringify(home.provider.requests.at(-1)?.body)).toContain('What is a wren?')
})

test.runIf(process.platform === 'linux')(
  'a chat that is suspended from outside gives the terminal back too',
  async () => {
    const home = await testHome()
    await using terminal = startTerminal({ home, command: shell, env: { PS1: 'shell> ' } })
    await terminal.waitFor('shell>')
    send(terminal, builtCommand.join(' '))
    await terminal.waitFor('model-1')
    const children = await readFile(`/proc/${terminal.pid}/task/${terminal.pid}/children`, 'utf8')
    process.kill(Number.parseInt(children, 10), 'SIGTSTP')
    await terminal.waitFor('Stopped')
    expect(terminal.emulator.buffer.active.type).toBe('normal')
    send(terminal, 'fg')
    await terminal.waitFor('Enter sends')
    terminal.press('ctrl-c', 'ctrl-c')
    await terminal.waitFor((rows) => rows.findLast((row) => row !== '')?.startsWith('shell>') ?? false)
    expect(terminal.emulator.buffer.active.type).toBe('normal')
  },
)
