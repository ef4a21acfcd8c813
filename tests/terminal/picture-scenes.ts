import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fakeHome, type FakeHome } from '../../packages/cli/src/testing/fake-home.ts'
import { call, say } from '../peers/answers.ts'
import type { Cell } from './screen.ts'
import { startTerminal, type Terminal } from './terminal.ts'

const size = { columns: 100, rows: 32 }

/** The screens of the README, as somebody would see them at work. */
export const pictureScenes: Record<'chat' | 'tree' | 'permission', () => Promise<Cell[][]>> = {
  chat: () =>
    scene({ settings: { permissions: { mode: 'auto' } } }, async (terminal, home) => {
      await writeFile(join(home.cwd, 'parse.ts'), source)
      home.provider.script(
        call({ id: 'call_1', name: 'read', input: { path: 'parse.ts' } }),
        call({ id: 'call_2', name: 'edit', input: { path: 'parse.ts', oldText: '>= 0', newText: '> 0' } }),
        call({ id: 'call_3', name: 'bash', input: { command: 'echo "3 tests passed"' } }),
        say(
          'A duration of **0** is no longer accepted:\n\n```ts\nif (Number.isFinite(value) && value > 0) return value\n```\n\nThe three tests pass.',
        ),
      )
      send(terminal, 'A timeout of 0 should be refused. Fix it and run the tests.')
      await terminal.waitFor('The three tests pass.')
      await terminal.waitFor('Enter sends')
    }),
  tree: () =>
    scene({}, async (terminal, home) => {
      home.provider.script(
        say('A queue in a file, with a lock.'),
        say('Then a crash can leave the lock behind.'),
        say('One log; what waits is a fold over it.'),
      )
      await ask(terminal, 'How should messages wait?', 'with a lock.')
      await ask(terminal, 'And if it is killed?', 'leave the lock behind.')
      terminal.press('ctrl-t')
      await terminal.waitFor('Enter go there')
      terminal.type('/with a lock')
      await terminal.waitFor('“with a lock”, 1')
      terminal.press('enter')
      await terminal.waitFor('Enter go there')
      terminal.press('enter')
      await terminal.waitFor((rows) => !rows.some((row) => /Enter go there|leave the lock behind/.test(row)))
      await ask(terminal, 'Think of a way without locks.', 'a fold over it.')
      send(terminal, '/label the way to go')
      terminal.press('ctrl-t')
      await terminal.waitFor('Enter go there')
    }),
  permission: () =>
    scene({}, async (terminal, home) => {
      const command = 'git fetch origin && git rebase origin/main && npm ci && npm test -- --reporter=dot'
      home.provider.script(call({ id: 'call_1', name: 'bash', input: { command } }))
      send(terminal, 'Bring this branch up to date and test it.')
      await terminal.waitFor('Allow bash?')
    }),
}

async function scene(
  options: { settings?: Record<string, unknown> },
  play: (terminal: Terminal, home: FakeHome) => Promise<void>,
): Promise<Cell[][]> {
  await using home = await fakeHome(options)
  await using terminal = startTerminal({ home, env: { COLORTERM: 'truecolor' }, ...size })
  await terminal.waitFor('Enter sends')
  await play(terminal, home)
  return terminal.cells()
}

function send(terminal: Terminal, text: string): void {
  terminal.type(text)
  terminal.press('enter')
}

async function ask(terminal: Terminal, question: string, until: string): Promise<void> {
  send(terminal, question)
  await terminal.waitFor(until)
  await terminal.waitFor('Enter sends')
}

const source = `export function parseDuration(text: string): number {
  const value = Number(text)
  if (Number.isFinite(value) && value >= 0) return value
  throw new Error(\`Not a duration: \${text}\`)
}
`
