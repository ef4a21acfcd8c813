import type { FakeHome } from '../../../packages/cli/src/testing/fake-home.ts'
import { startTerminal, type Terminal } from '../../terminal/terminal.ts'
import { watch } from './emulator-watch.ts'

/** What came of one screen. */
export interface Shown {
  display: string
  /** The cases that had to be seen, and where each was from. */
  expected: ReadonlyMap<number, string>
  bytes: Uint8Array
  /** What the terminal was made to do. */
  done: readonly string[]
  replies: readonly string[]
}

export interface Display {
  name: string
  args: readonly string[]
  expected: ReadonlyMap<number, string>
  /** Makes it show everything, and leaves. */
  look: (terminal: Terminal) => Promise<void>
}

/** So high and so wide that nothing has to be scrolled or broken. */
const size = { columns: 240, rows: 3000, scrollback: 20_000 }

/** Thousands of hostile cases on one screen, on a machine whose host may take its processors away for a while. */
const patienceMs = 120_000

export async function show(home: FakeHome, { name, args, expected, look }: Display): Promise<Shown> {
  await using terminal = startTerminal({ home, args, ...size, patienceMs })
  const { done, replies } = watch(terminal.emulator)
  await look(terminal)
  return { display: name, expected, bytes: terminal.bytes, done, replies }
}

/** However much is open: the first closes or stops what is, the last two leave. */
export async function leave(terminal: Terminal): Promise<void> {
  terminal.press('ctrl-c', 'ctrl-c')
  await terminal.exit
}
