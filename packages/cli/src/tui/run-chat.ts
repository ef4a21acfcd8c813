import { ProcessTerminal, type Terminal } from '@earendil-works/pi-tui'
import { ChatApp } from './app/chat-app.ts'
import type { PlainChat } from './screen-reader/plain-chat.ts'
import type { ChatEnd, ChatOptions } from './chat-options.ts'

/** Shows a session until the user quits, then restores the terminal. */
export async function runChat(options: ChatOptions): Promise<ChatEnd> {
  if (options.terminal) return runOn(options, options.terminal)
  const gone = watchTerminal()
  const signal = options.signal ? AbortSignal.any([options.signal, gone]) : gone
  // Windows does not have these signals.
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

/** Loaded only for screen readers. */
async function plainChat(options: ChatOptions, terminal: Terminal): Promise<PlainChat> {
  const { PlainChat: Chat } = await import('./screen-reader/plain-chat.ts')
  return new Chat(options, terminal)
}

/** Restores the terminal on an uncaught error or an early exit. Returns a function that removes the handlers. */
function restoreOnDeath(restore: () => void): () => void {
  // A monitor sees the error before its handler, and does not count as a handler.
  process.on('uncaughtExceptionMonitor', restore)
  process.on('exit', restore)
  return () => {
    process.off('uncaughtExceptionMonitor', restore)
    process.off('exit', restore)
  }
}

/**
 * Aborted when the terminal of this process is gone: its window was closed, or its connection was lost. Not every system and shell sends a
 * signal then. Later writes fail and are ignored.
 */
function watchTerminal(): AbortSignal {
  const controller = new AbortController()
  const gone = (): void => controller.abort()
  for (const event of ['end', 'close', 'error']) process.stdin.on(event, gone)
  // The listeners stay: restoring the terminal fails too, and an unhandled error would end the process abruptly.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', gone)
  return controller.signal
}

/** Hands the terminal to the shell, and takes it back. */
interface Suspendable {
  pause: () => void
  resume: () => void
}

interface Suspension {
  /** Stops the process group, as Ctrl-Z does elsewhere. Returns when the shell continues it. */
  suspend: () => void
  close: () => void
}

/**
 * Timeout in case the stop signal has no effect, as without a shell to return to: then no SIGCONT follows. Timers do not run while the
 * process is stopped.
 */
const ignoredAfterMs = 200

/**
 * Lets a chat be suspended: by its own key, and by SIGTSTP from outside. The shell has the terminal meanwhile. On SIGCONT, also after a
 * SIGSTOP, takes it back and redraws.
 */
function suspendable({ pause, resume }: Suspendable): Suspension {
  let isPaused = false
  const suspend = (): void => {
    if (isPaused) return
    isPaused = true
    pause()
    process.off('SIGTSTP', suspend)
    // The whole group: a wrapper such as npx must stop too, or the shell does not get the terminal.
    process.kill(0, 'SIGTSTP')
    setTimeout(takeBack, ignoredAfterMs)
  }
  const takeBack = (): void => {
    if (!isPaused) return
    isPaused = false
    process.on('SIGTSTP', suspend)
    resume()
  }
  const continued = (): void => {
    if (!isPaused) {
      isPaused = true
      pause()
    }
    takeBack()
  }
  process.on('SIGTSTP', suspend)
  process.on('SIGCONT', continued)
  return {
    suspend,
    close: () => {
      process.off('SIGTSTP', suspend)
      process.off('SIGCONT', continued)
      isPaused = false
    },
  }
}
