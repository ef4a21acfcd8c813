import type { IPty } from '@lydell/node-pty'
import xterm from '@xterm/headless'
import { expect, test } from 'vitest'
import { Terminal } from './terminal.ts'

const [frameBegin, frameEnd] = ['\u001b[?2026h', '\u001b[?2026l']

test('a frame that has ended is in sight, even if more was read before it was drawn', async () => {
  const { terminal, read } = terminalThatReads()
  read(`${frameBegin}half of`)
  await terminal.drawn()
  read(` the frame${frameEnd}`)
  read('\u001b[1G')
  await terminal.waitFor('half of the frame', { timeoutMs: 5000 })
})

test('a frame that has begun is not in sight, even if more was read before its beginning was drawn', async () => {
  const { terminal, read } = terminalThatReads()
  read(`${frameBegin}half`)
  read(' of')
  await terminal.drawn()
  await expect(terminal.waitFor('half of', { timeoutMs: 1 })).rejects.toThrow('Not in sight')
  read(` the frame${frameEnd}`)
  await terminal.waitFor('half of the frame', { timeoutMs: 5000 })
})

/** A terminal whose command writes what the test says, read by read. */
function terminalThatReads(): { terminal: Terminal & { drawn(): Promise<void> }; read: (text: string) => void } {
  let onData: (data: string) => void = () => undefined
  const pty = {
    onData: (listener: (data: string) => void) => {
      onData = listener
    },
    onExit: () => undefined,
    write: () => undefined,
    _socket: { destroy: () => undefined },
  }
  const emulator = new xterm.Terminal({ cols: 80, rows: 5, allowProposedApi: true })
  const terminal = new Terminal(pty as unknown as IPty, emulator)
  const drawn = (): Promise<void> => new Promise((resolve) => emulator.write('', resolve))
  return { terminal: Object.assign(terminal, { drawn }), read: (text) => onData(text) }
}
