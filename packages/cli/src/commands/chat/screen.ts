import { join } from 'node:path'
import { hasColour } from '../../command-line/colour.ts'
import { flag, textOption, type Invocation } from '../../command-line/command.ts'
import type { Io } from '../../command-line/io.ts'
import { placesOf } from '../../host/places.ts'
import type { ChatEnd, ChatLook, ChatOptions } from '../../tui/chat-options.ts'

export interface ShownChat extends Pick<ChatOptions, 'source' | 'first' | 'look' | 'notices' | 'remarks'> {
  io: Io
  /** Where the session works, if it is not here. */
  cwd?: string | undefined
  /** Empty: nothing is said yet. */
  prompt?: string
  /** Lets others attach once the screen stands. */
  host?: { listen: () => Promise<void> }
}

/** The socket for others is opened this long after the screen, which it must not slow down. */
const listenAfterMs = 300

export async function showChat({ io, cwd = io.cwd, prompt = '', host, ...chat }: ShownChat): Promise<ChatEnd> {
  const { env, home, signal } = io
  const editor = env['VISUAL'] || env['EDITOR']
  const { runChat } = await import('../../tui/run-chat.ts')
  const timer = setTimeout(() => void host?.listen(), listenAfterMs)
  try {
    return await runChat({
      ...chat,
      historyFile: join(placesOf(io).state, 'history.jsonl'),
      cwd,
      home,
      env,
      signal,
      ...(editor !== undefined && editor !== '' && { editor }),
      ...(prompt !== '' && { prompt }),
    })
  } finally {
    clearTimeout(timer)
  }
}

/** What was said on the command line, over the settings. */
export function lookOf(invocation: Invocation, terminal: Omit<ChatLook, 'colour'>, { stdout, env }: Io): ChatLook {
  const theme = textOption(invocation, 'theme') as ChatLook['theme'] | undefined
  return {
    theme: theme ?? terminal.theme,
    vim: flag(invocation, 'vim') || terminal.vim,
    screenReader: flag(invocation, 'screen-reader') || terminal.screenReader,
    altScreen: !flag(invocation, 'no-alt-screen') && terminal.altScreen,
    colour: hasColour(stdout, env),
  }
}
