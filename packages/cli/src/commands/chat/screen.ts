import { join } from 'node:path'
import { hasColor, type Io } from '../../command-line/io.ts'
import { flag, textOption, type Invocation } from '../../command-line/command.ts'
import { placesOf } from '../../host/places.ts'
import type { ChatEnd, ChatLook, ChatOptions } from '../../tui/chat-options.ts'

export interface ShownChat extends Pick<ChatOptions, 'source' | 'first' | 'look' | 'notices' | 'remarks' | 'services'> {
  io: Io
  /** The working folder of the session, if it is not this one. */
  cwd?: string | undefined
  /** If empty, no prompt is sent. */
  prompt?: string
  /** Lets other screens attach once this one is drawn. */
  host?: { listen: () => Promise<void> }
}

/** Delay in ms before the socket for other screens opens, so that it does not slow down the first frame. */
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

/** Choices from the command line, which override the settings. */
export function lookOf(invocation: Invocation, terminal: Omit<ChatLook, 'color'>, { stdout, env }: Io): ChatLook {
  const theme = textOption(invocation, 'theme') as ChatLook['theme'] | undefined
  return {
    theme: theme ?? terminal.theme,
    detectsTheme: theme === undefined && terminal.detectsTheme === true,
    vim: flag(invocation, 'vim') || terminal.vim,
    screenReader: flag(invocation, 'screen-reader') || terminal.screenReader,
    altScreen: !flag(invocation, 'no-alt-screen') && terminal.altScreen,
    color: hasColor(stdout, env),
  }
}
