import { ProcessTerminal, type Terminal } from '@earendil-works/pi-tui'
import { ChatApp } from './app/chat-app.ts'
import { restoreOnDeath } from './restore-terminal.ts'
import { suspendable } from './app/suspend.ts'
import { watchTerminal } from './terminal-gone.ts'
import type { PlainChat } from './screen-reader/plain-chat.ts'
import type { ChatEnd, ChatOptions } from './chat-options.ts'

/** Shows a session and lets one talk to it, until the user leaves. Afterwards the terminal is as it was. */
export async function runChat(options: ChatOptions): Promise<ChatEnd> {
  if (options.terminal) return runOn(options, options.terminal)
  const gone = watchTerminal()
  const signal = options.signal ? AbortSignal.any([options.signal, gone]) : gone
  // Windows has no such signals.
  const canSuspend = process.platform !== 'win32'
  let chat: ChatApp | PlainChat | undefined
  const suspension = canSuspend ? suspendable({ pause: () => chat?.pause(), resume: () => chat?.resume() }) : undefined
  const all = { ...options, signal, ...(suspension && { suspend: suspension.suspend }) }
  try {
    return await runOn(all, new ProcessTerminal(), (made) => (chat = made))
  } finally {
    suspension?.close()
  }
}

async function runOn(
  options: ChatOptions,
  terminal: Terminal,
  onMade?: (chat: ChatApp | PlainChat) => void,
): Promise<ChatEnd> {
  const chat = options.look.screenReader ? await plainChat(options, terminal) : new ChatApp(options, terminal)
  onMade?.(chat)
  const unwatch = restoreOnDeath(() => chat.restore())
  try {
    return await chat.run()
  } finally {
    unwatch()
  }
}

/** Loaded only for those who hear the screen. */
async function plainChat(options: ChatOptions, terminal: Terminal): Promise<PlainChat> {
  const { PlainChat: Chat } = await import('./screen-reader/plain-chat.ts')
  return new Chat(options, terminal)
}
