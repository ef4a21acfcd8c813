import type { ChatEnd, ChatLook, ChatOptions } from '../chat-options.ts'
import type { SessionAccess } from '../../session-source.ts'
import { runChat } from '../run-chat.ts'
import { GridTerminal } from './grid-terminal.ts'
import type { ScriptedHandle } from './scripted-handle.ts'
import { ScriptedSource } from './scripted-source.ts'

export interface RunningChat extends AsyncDisposable {
  terminal: GridTerminal
  source: ScriptedSource
  /** Of the first session. */
  handle: ScriptedHandle
  ended: Promise<ChatEnd>
  /** Milliseconds; a test advances it. */
  clock: { now: number }
}

export interface ChatDriverOptions extends Partial<Omit<ChatOptions, 'look' | 'source' | 'terminal'>> {
  look?: Partial<ChatLook>
  size?: { columns: number; rows: number }
  access?: SessionAccess
  /** Before the chat starts. */
  arrange?: (handle: ScriptedHandle, source: ScriptedSource) => void
}

export const keys = {
  enter: '\r',
  escape: '\u001b',
  altEnter: '\u001b\r',
  ctrlC: '\u0003',
  ctrlD: '\u0004',
  up: '\u001b[A',
  down: '\u001b[B',
  pageUp: '\u001b[5~',
  pageDown: '\u001b[6~',
  end: '\u001b[F',
  tab: '\t',
  shiftTab: '\u001b[Z',
  backspace: '\u007f',
} as const

export function ctrl(letter: string): string {
  return String.fromCharCode(letter.charCodeAt(0) - 96)
}

export function pasted(text: string): string {
  return `\u001b[200~${text}\u001b[201~`
}

/** The real chat with a scripted session and a grid terminal. */
export function startChat({ look, size, access, arrange, ...options }: ChatDriverOptions = {}): RunningChat {
  const terminal = new GridTerminal(size)
  const source = new ScriptedSource()
  const { handle } = source.opened('first')
  const clock = { now: 1_700_000_000_000 }
  arrange?.(handle, source)
  const ended = runChat({
    source,
    first: source.opened('first', access),
    look: { theme: 'dark', vim: false, screenReader: false, altScreen: true, color: true, ...look },
    cwd: '/work',
    home: '/home',
    env: {},
    now: () => clock.now,
    ...options,
    terminal,
  })
  return {
    terminal,
    source,
    handle,
    ended,
    clock,
    [Symbol.asyncDispose]: async () => {
      clock.now += 10_000
      terminal.press(keys.ctrlC)
      terminal.press(keys.ctrlC)
      await ended.catch(() => undefined)
    },
  }
}
