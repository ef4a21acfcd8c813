import type { Terminal } from '../../terminal/terminal.ts'

/** What a new user does in front of the commands that go on until they are left, and the exit code that they leave with. */
export const dialogues: Record<string, (terminal: Terminal) => Promise<void>> = {
  tapetree: async (terminal) => {
    await terminal.waitFor((rows) => rows.some((row) => row.trim() !== ''))
    terminal.type('What can you do?')
    terminal.press('enter')
    await terminal.waitFor('I am a scripted model.')
    await leave(terminal)
  },
  'tapetree -c': async (terminal) => {
    await terminal.waitFor('I am a scripted model.')
    await leave(terminal)
  },
  'tapetree serve': async (terminal) => {
    await terminal.waitFor('#pair=')
    terminal.press('ctrl-c')
    await terminal.exit
  },
}

async function leave(terminal: Terminal): Promise<void> {
  terminal.press('ctrl-c', 'ctrl-c')
  await terminal.exit
}
